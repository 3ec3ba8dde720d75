// The emulator's entry function as text, and the call of clang-19. Geometry, element counts and symbols are read from
// the run's dims, exactly as a driver launch would get them. A fault of a kernel is printed to stderr with file and
// line and ends the run with 1 + step, negated, in the thread's fault word.
#include "compiler/codegen/cuda/Emulator.h"
#include "compiler/codegen/cpu/FlatLink.h"
#include "compiler/codegen/cuda/Launches.h"
#include "compiler/codegen/cuda/Printer.h"
#include "compiler/graph/Failure.h"
#include "compiler/graph/TemporaryFolder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;

namespace tare::cuda {

// kernels/cuda/emu/launch.h machineBytes, in numbers: 64 KiB per thread and once more, shared memory, its shadow (16
// bytes per 2), the machine itself.
static int64_t machineBytes(int64_t sharedBytes) { return 129 * 65536 + 9 * ((sharedBytes + 63) / 64 * 64) + 16384; }

// kernels/cuda/emu/stats.h: the counts of a thread's blocks (four warps), and the tables of all kernels. The text checks
// these numbers.
constexpr int64_t kStatsBytes = 1216 * 1024, kTableBytes = 17 * 1024;

int64_t addEmulatorMemory(ModuleOp planned, const std::vector<KernelText> &kernels, bool stats) {
  plan::ProgramOp program = *planned.getOps<plan::ProgramOp>().begin();
  int64_t most = 0, buffers = 0, steps = 0;
  for (auto &k : kernels)
    most = std::max(most, k.sharedBytes);
  int64_t bytes = (machineBytes(most) + 63) / 64 * 64;
  if (stats) bytes += kStatsBytes + kTableBytes * static_cast<int64_t>(kernels.size());
  plan::BufferOp last;
  for (auto b : program.getBody().getOps<plan::BufferOp>())
    last = b, ++buffers;
  for ([[maybe_unused]] auto s : program.getBody().getOps<plan::DispatchOp>())
    ++steps;
  OpBuilder b(planned.getContext());
  last ? b.setInsertionPointAfter(last) : b.setInsertionPointToStart(&program.getBody().front());
  auto type = RankedTensorType::get({}, b.getF32Type());
  b.create<plan::BufferOp>(program.getLoc(), "per_thread", "emulator", type,
                           graph::DimsAttr::get(planned.getContext(), Dim(bytes)), -1, 0,
                           std::max<int64_t>(steps - 1, 0), "raw", graph::DimsAttr(), ElementsAttr());
  return buffers;
}

namespace {
constexpr char prologue[] = R"(
extern "C" {
__attribute__((used)) void *memset(void *to, int value, unsigned long bytes) {
  void *at = to;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}
__attribute__((used)) void *memcpy(void *to, const void *from, unsigned long bytes) {
  void *at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}
}
namespace tare {
/// A plan buffer as `T`s.
template <class T> static inline global<T> buffer(const tare_code_args *args, int index, i64 count, const char *name) { return {static_cast<T *>(args->buffers[index]), count, name, nullptr}; }
/// kernels/cpu/kernels.h tare_check_rows: which rows a fidelity check evaluates in this run.
struct CheckRows {
  const i64 *rows;
  i64 count, tokens;
  const u32 *carried;
  u32 *last, *all;
  const int *anchors;
  i64 anchorCount;
  const i64 *first;
  i64 past;
};
template <class Run> static inline Run anchored(const tare_code_args *args, int index, i64 batch) {
  const CheckRows &c = *static_cast<const CheckRows *>(args->buffers[index]);
  return {{c.anchors, c.anchorCount > 0 ? batch * c.anchorCount : 0, "anchors", nullptr}, c.anchorCount, {c.first, batch, "first", nullptr}, c.tokens, c.past,
          {c.carried, c.carried ? batch : 0, "carried", nullptr}, {c.last, c.last ? batch : 0, "last", nullptr}};
}
template <class Run> static inline Run listed(const tare_code_args *args, int index, i64 batch) {
  const CheckRows &c = *static_cast<const CheckRows *>(args->buffers[index]);
  return {{c.rows, c.count > 0 ? c.count : 0, "rows", nullptr}, c.count, c.tokens, {c.carried, c.carried ? batch : 0, "carried", nullptr}, {c.last, c.last ? batch : 0, "last", nullptr}};
}
static void say(const char *text, u64 bytes) {
  long written = 1, handle = 2;
  __asm__ volatile("syscall" : "+a"(written) : "D"(handle), "S"(text), "d"(bytes) : "rcx", "r11", "memory");
}
/// Reports a fault, then meets the other threads; true when the run is over.
static __attribute__((noinline)) bool step_done(const tare_code_args *args, i64 thread, i64 step, emu::Report &report) {
  if (report.kind() != emu::Fault::None) {
    u64 bytes = 0;
    while (bytes + 1 < sizeof report.text && report.text[bytes]) ++bytes;
    report.text[bytes] = '\n';
    say(report.text, bytes + 1);
    args->fault[thread] = -(1 + step);
  }
  return args->barrier(args->pool, thread) != 0;
}
}
)";

/// What `cuda-emu:stats` adds: counts per host thread, added up per kernel by thread 0 between two meetings, printed at the
/// end. A thread's memory: machine, Stats, one Table per kernel (thread 0's are used).
constexpr char statsPrologue[] = R"text(
namespace tare {
struct Counts {
  u8 *base;
  i64 perThread, machineBytes;
  emu::Stats &of(i64 thread) const { return *reinterpret_cast<emu::Stats *>(base + thread * perThread + machineBytes); }
  emu::Table &table(i64 kernel) const { return *reinterpret_cast<emu::Table *>(base + machineBytes + kStatsBytes + kernel * kTableBytes); }
  /// After a launch, behind the barrier that all threads met at; true when the run is over.
  bool add(const tare_code_args *args, i64 thread, i64 kernel) const {
    if (thread == 0)
      for (i64 t = 0; t < args->thread_count; ++t) emu::mergeStats(table(kernel), of(t));
    return args->barrier(args->pool, thread) != 0; // nobody clears its counts before
  }
  void print(i64 kernel, const char *name) const {
    char text[512];
    const emu::Table &t = table(kernel);
    auto line = [&](auto fill) {
      emu::Text words(text, sizeof text - 1);
      fill(words);
      *words.at++ = '\n';
      say(text, static_cast<u64>(words.at - text));
    };
    if (!t.lineCount) return;
    line([&](emu::Text &w) { w << name; });
    for (u32 i = 0; i < t.lineCount; ++i) line([&](emu::Text &w) { emu::describe(w, t.lines[i]); });
    if (t.lost) line([&](emu::Text &w) { w << "  (" << t.lost << " accesses more than the table holds are not counted)"; });
  }
};
}
)text";

/// A size read from the run: an expression over the symbols that the entry loads.
std::string sizeText(const Dim &d) { return dimText(d, true); }

/// An argument of a launch as an expression of the entry.
std::string argumentText(const LaunchArgument &a, const Launch &launch, ArrayRef<plan::BufferOp> buffers) {
  switch (a.kind) {
  case LaunchArgument::Dim:
    return sizeText(a.dim);
  case LaunchArgument::Fault:
    return "global<i64>{reinterpret_cast<i64 *>(args->fault + thread), 1, \"fault\", nullptr}";
  case LaunchArgument::Step:
    return std::to_string(launch.step);
  case LaunchArgument::Check:
  case LaunchArgument::Anchors:
    return (a.kind == LaunchArgument::Check ? "listed<ListedRun>(args, " : "anchored<CheckRun>(args, ") + std::to_string(a.buffer) + ", " +
           sizeText(graph::dimsOf(cast<RankedTensorType>(a.type))[0]) + ")";
  case LaunchArgument::Buffer:
    break;
  }
  plan::BufferOp b = buffers[static_cast<size_t>(a.buffer)];
  Type element = cast<RankedTensorType>(a.type).getElementType();
  unsigned bits = std::max(8u, element.getIntOrFloatBitWidth());
  bool nibbles = b.getPacking() == "check_nibble32";
  if (nibbles) bits = 8;
  std::string stored = nibbles ? "u8" : storageType(a.stored), count = sizeText(b.getBytes().dims()[0]);
  if (bits > 8) count += " / " + std::to_string(bits / 8);
  auto operands = llvm::count_if(launch.arguments, [](auto &o) { return o.buffer >= 0 && !o.written; });
  std::string name = (a.written ? "y" : "x") + std::to_string(a.written ? a.position - operands : a.position);
  return "buffer<" + std::string(a.written ? "" : "const ") + stored + ">(args, " + std::to_string(a.buffer) + ", " +
         count + ", \"" + name + "\")";
}
} // namespace

std::string emulatorText(ModuleOp planned, const std::vector<KernelText> &kernels, int64_t memory, bool stats) {
  plan::ProgramOp program = *planned.getOps<plan::ProgramOp>().begin();
  std::string text = "#include \"kernels/cuda/simt.cuh\"\n#include \"runtime/code_abi.h\"\n";
  text += prologue;
  if (stats)
    text += "constexpr tare::i64 kStatsBytes = " + std::to_string(kStatsBytes) + ", kTableBytes = " +
                     std::to_string(kTableBytes) + ";\nstatic_assert(tare::emu::statsBytes(" +
                     std::to_string(kBlockThreads / 32) + ") <= kStatsBytes && sizeof(tare::emu::Table) <= kTableBytes);\n" +
                     statsPrologue;
  for (auto &k : kernels)
    text += "#line 1 \"" + k.name + ".cu\"\n" + k.text;
  text += "#line 1 \"entry.cu\"\n";
  SmallVector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>());
  Dims table = program.getDims().dims();

  text += "namespace tare {\nextern \"C\" __attribute__((visibility(\"hidden\"))) int64_t tare_entry(const "
          "tare_code_args *args, int64_t thread) {\n";
  for (auto attr : program.getSymbols().getAsRange<StringAttr>()) {
    size_t index = llvm::find(table, Dim::symbol(attr.getValue())) - table.begin();
    text += "  const i64 " + symbolName(attr.getValue()) + " = args->dims[" + std::to_string(index) + "];\n  (void)" +
            symbolName(attr.getValue()) + ";\n";
  }
  text += "  void *const machine = static_cast<u8 *>(args->buffers[" + std::to_string(memory) + "]) + thread * " +
          std::to_string(*buffers[memory].getBytes().dims()[0].constant()) + ";\n";
  text += "  const u32 part = static_cast<u32>(thread), parts = static_cast<u32>(args->thread_count);\n";
  if (stats) {
    int64_t perThread = *buffers[memory].getBytes().dims()[0].constant(), count = static_cast<int64_t>(kernels.size());
    text += "  const Counts counts{static_cast<u8 *>(args->buffers[" + std::to_string(memory) + "]), " +
            std::to_string(perThread) + ", " + std::to_string(perThread - kStatsBytes - kTableBytes * count) +
            "};\n  if (thread == 0)\n    for (i64 k = 0; k < " + std::to_string(count) +
            "; ++k) counts.table(k).lineCount = counts.table(k).lost = 0;\n";
  }
  std::vector<Launch> launches = launchesOf(planned, kernels);
  for (size_t i = 0; i < launches.size(); ++i) {
    const KernelText &k = *launches[i].kernel;
    std::string n = std::to_string(launches[i].step);
    bool first = i == 0 || launches[i - 1].step != launches[i].step;
    SmallVector<std::string> arguments;
    for (auto &a : launches[i].arguments)
      arguments.push_back(argumentText(a, launches[i], buffers));
    text += "  if (!args->skip[" + n + "]) {\n";
    if (first) text += "    if (args->stamp && thread == 0) args->stamp(args->stamp_state, " + n + ");\n";
    text += "    emu::Report report;\n    const i64 gx = " + sizeText(k.grid[0]) + ", gy = " + sizeText(k.grid[1]) +
            ", gz = " + sizeText(k.grid[2]) + ";\n";
    if (stats)
      text += "    emu::clear(counts.of(thread), " + std::to_string(kBlockThreads / 32) + ");\n";
    text += "    if (gx > 0 && gy > 0 && gz > 0)\n      emu::launch(machine, {{static_cast<u32>(gx), "
            "static_cast<u32>(gy), static_cast<u32>(gz)}, {" +
            std::to_string(kBlockThreads) + ", 1, 1}, " + std::to_string(k.sharedBytes) + "}, \"" + k.name + "\", " +
            n + ", report, part, parts, [&] { " + k.name + "(" + llvm::join(arguments, ", ") + "); }" +
            (stats ? ", &counts.of(thread)" : "") + ");\n";
    text += "    if (step_done(args, thread, " + n + ", report)) return 1;\n";
    if (stats)
      text += "    if (counts.add(args, thread, " + std::to_string(launches[i].kernel - kernels.data()) + ")) return 1;\n";
    text += "  }\n";
  }
  if (stats) {
    text += "  if (thread == 0) {\n";
    for (auto [i, k] : llvm::enumerate(kernels))
      text += "    counts.print(" + std::to_string(i) + ", \"" + k.name + "\");\n";
    text += "  }\n";
  }
  size_t steps = llvm::range_size(program.getBody().getOps<plan::DispatchOp>());
  text += "  if (args->stamp && thread == 0) args->stamp(args->stamp_state, " + std::to_string(steps) +
          ");\n  return 0;\n}\n}\n";
  return text;
}

llvm::Expected<ClangProgram> emulatorCompiler() {
  constexpr char hint[] = "install it (Debian: apt install clang-19; TARE_CLANG names another one), or leave cuda-emu out of --target";
  auto compiler = findClangProgram();
  if (compiler && !compiler->path.empty()) return compiler;
  if (compiler) return fail(ExitCode::Environment, "the target cuda-emu needs clang-19, and there is none").withHint(hint);
  Failure why(ExitCode::Environment, "");
  llvm::handleAllErrors(compiler.takeError(), [&](const Failure &failure) { why = failure; });
  return llvm::make_error<Failure>(why.withHint(hint));
}

llvm::Expected<CodeSection> compileForEmulator(ModuleOp planned, const std::vector<KernelText> &kernels, bool stats) {
  auto compiler = emulatorCompiler();
  if (!compiler) return compiler.takeError();
  int64_t memory = addEmulatorMemory(planned, kernels, stats);
  std::string text = flatten(emulatorText(planned, kernels, memory, stats));
  auto folder = TemporaryFolder::create("cuda");
  if (!folder) return folder.takeError();
  auto source = folder->write("kernels.cpp", text);
  if (!source) return source.takeError();
  const std::string object = folder->path("kernels.o");
  auto run = runProgram(compiler->path, {"-x", "c++", "-std=c++20", "-O2", "-march=x86-64-v3", "-ffreestanding", "-fPIC",
                                    "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector",
                                    "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-threadsafe-statics",
                                    "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
                                    "-fno-trapping-math", "-ffunction-sections", "-fno-ident", "-w", "-mllvm",
                                    "-pragma-unroll-threshold=200", // a GPU's unrolled loops only take time to compile
                                    "-c", *source,
                                    "-o", object});
  if (!run) return run.takeError();
  if (run->status != 0) {
    llvm::consumeError(folder->write("log", run->output).takeError());
    return fail(ExitCode::Environment, "clang-19 failed on the generated kernels (status " +
                                           std::to_string(run->status) + "): " + run->output.substr(0, run->output.find('\n')))
        .inFile(*source)
        .withHint("the text and the compiler's log are kept in " + std::move(*folder).keep() +
                  "; with clang-19 of LLVM 19.1 this is a bug: please report them");
  }
  auto bytes = llvm::MemoryBuffer::getFile(object, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes || !isImage((*bytes)->getBuffer(), "sm_", ""))
    return fail(ExitCode::Environment, "clang-19 succeeded and left no object code").inFile(compiler->path).withHint("repair the installation, or name another clang-19 with TARE_CLANG");
  return linkFlat((*bytes)->getBuffer(), "cuda-emu");
}

} // namespace tare::cuda
