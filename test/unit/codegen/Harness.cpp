// The harness: plan-buffers, emitKernels, compileForLevels, an executable mapping, buffers as the plan says, threads with a real barrier, the reference beside it.
#include "test/unit/codegen/Harness.h"
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/codegen/cpu/Packing.h"
#include "compiler/plan/Plan.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "runtime/code_abi.h"
#include "llvm/ADT/APFloat.h"
#include <barrier>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <thread>

using namespace mlir;

namespace tare::test {
namespace {

std::string hostLevel() {
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni")) return "avx512-bf16";
  return __builtin_cpu_supports("x86-64-v4") ? "x86-64-v4" : "x86-64-v3";
}

reference::Tensor randomTensor(Type element, std::vector<int64_t> shape, std::mt19937_64 &random, int64_t lo, int64_t hi) {
  reference::Tensor t = reference::Tensor::zeros(element, std::move(shape));
  std::normal_distribution<double> normal;
  for (double &v : t.floats) v = normal(random);
  if (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() == 1) lo = 0, hi = 1;
  if (element.isUnsignedInteger()) lo = std::max<int64_t>(lo, 0);
  std::uniform_int_distribution<int64_t> uniform(lo, hi);
  for (int64_t &v : t.ints) v = uniform(random);
  reference::roundToElementType(t);
  return t;
}

double storedFloat(Type element, const char *p, size_t i) {
  if (element.isF32()) return reinterpret_cast<const float *>(p)[i];
  if (element.isF64()) return reinterpret_cast<const double *>(p)[i];
  uint16_t bits = reinterpret_cast<const uint16_t *>(p)[i];
  APFloat value(cast<FloatType>(element).getFloatSemantics(), APInt(16, bits));
  bool lost;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToDouble();
}

int64_t storedInteger(Type element, const char *p, size_t i) {
  bool isUnsigned = element.isUnsignedInteger();
  switch (element.getIntOrFloatBitWidth()) {
  case 1: return reinterpret_cast<const uint8_t *>(p)[i];
  case 8: return isUnsigned ? int64_t(reinterpret_cast<const uint8_t *>(p)[i]) : int64_t(reinterpret_cast<const int8_t *>(p)[i]);
  case 16: return isUnsigned ? int64_t(reinterpret_cast<const uint16_t *>(p)[i]) : int64_t(reinterpret_cast<const int16_t *>(p)[i]);
  case 32: return isUnsigned ? int64_t(reinterpret_cast<const uint32_t *>(p)[i]) : int64_t(reinterpret_cast<const int32_t *>(p)[i]);
  default: return reinterpret_cast<const int64_t *>(p)[i];
  }
}

struct Pool {
  explicit Pool(int64_t threads) : meet(threads) {}
  std::barrier<> meet;
};
int64_t waitForAll(void *pool, int64_t) {
  static_cast<Pool *>(pool)->meet.arrive_and_wait();
  return 0;
}

constexpr size_t kGuard = 128; // bytes around every buffer that no kernel may touch
constexpr char kMark = 0x5a;
struct Storage {
  std::vector<char> bytes;
  explicit Storage(size_t size) : bytes(size + 2 * kGuard + 64, kMark), size(size) {}
  char *data() { return reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(bytes.data()) + kGuard + 63) / 64 * 64); }
  bool intact() {
    for (char *p = bytes.data(); p < data(); ++p)
      if (*p != kMark) return false;
    for (char *p = data() + size; p < bytes.data() + bytes.size(); ++p)
      if (*p != kMark) return false;
    return true;
  }
  size_t size;
};

} // namespace

Program::Program(const std::string &text) : own(std::make_unique<MLIRContext>()) {
  own->loadDialect<graph::GraphDialect, plan::PlanDialect, func::FuncDialect>();
  own->allowUnregisteredDialects();
  fused = parseSourceString<ModuleOp>(text, own.get());
  EXPECT_TRUE(fused) << text;
  if (fused) build();
}

Program::Program(MLIRContext &context, OwningOpRef<ModuleOp> module) : fused(std::move(module)) { build(); }

Program::~Program() {
  if (entry) munmap(entry, bytes);
}

void Program::build() {
  planned = fused->clone();
  PassManager manager(planned->getContext());
  manager.addPass(createPlanBuffersPass());
  ASSERT_TRUE(succeeded(manager.run(*planned)));
  auto kernels = codegen::emitKernels(*planned);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  auto sections = compileForLevels(**kernels, {hostLevel()}, 1);
  ASSERT_TRUE(bool(sections)) << llvm::toString(sections.takeError());
  bytes = sections->front().bytes.size();
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  memcpy(memory, sections->front().bytes.data(), bytes);
  ASSERT_EQ(mprotect(memory, bytes, PROT_READ | PROT_EXEC), 0);
  entry = memory;
}

void Program::check(const RunOptions &options) {
  for (int64_t threads : {1, 2, 3}) checkThreads(options, threads);
}

void Program::checkThreads(const RunOptions &options, int64_t threads) {
  ASSERT_TRUE(ok());
  std::string at = " (seed " + std::to_string(options.seed) + ", threads " + std::to_string(threads) + ")";
  for (auto &[name, value] : options.symbols) at += " " + name + "=" + std::to_string(value);
  auto valueOf = [&](StringRef name) -> std::optional<int64_t> {
    if (name.starts_with("capacity.")) { // bound to the tensor's own size, or to a fixed room
      if (options.linked) return 64;
      for (auto state : (*planned->getOps<plan::ProgramOp>().begin())->getAttrOfType<ArrayAttr>(plan::kStatesAttr).getAsRange<DictionaryAttr>())
        for (StringRef side : {"input", "output"})
          if (state.getAs<StringAttr>((side + "_capacity").str()).getValue() == name) {
            auto main = planned->lookupSymbol<func::FuncOp>("main");
            int64_t number = state.getAs<IntegerAttr>(side).getInt(), axis = state.getAs<IntegerAttr>("axis").getInt();
            Type type = side == "input" ? main.getArgumentTypes()[number] : main.getResultTypes()[number];
            return graph::dimsOf(cast<RankedTensorType>(type))[axis].evaluate([&](StringRef n) -> std::optional<int64_t> { return options.symbols.at(n.str()); });
          }
    }
    auto it = options.symbols.find(name.str());
    if (it == options.symbols.end()) return std::nullopt;
    return it->second;
  };
  auto evaluate = [&](const Dim &d) { return *d.evaluate(valueOf); };

  auto main = fused->lookupSymbol<func::FuncOp>("main");
  std::mt19937_64 random(options.seed);
  std::vector<reference::Tensor> inputs;
  for (BlockArgument argument : main.getArguments()) {
    std::vector<int64_t> shape;
    for (auto &d : graph::dimsOf(argument)) shape.push_back(evaluate(d));
    int64_t lo = -9, hi = 9;
    if (auto range = main.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "test.range")) {
      lo = cast<IntegerAttr>(range[0]).getInt();
      hi = cast<IntegerAttr>(range[1]).getInt();
    }
    inputs.push_back(randomTensor(cast<RankedTensorType>(argument.getType()).getElementType(), shape, random, lo, hi));
  }
  llvm::SmallVector<reference::Tensor> expected;
  if (!options.expectFault) {
    auto values = reference::evaluate(main.front(), inputs);
    ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError()) << at;
    for (Value v : main.front().getTerminator()->getOperands()) expected.push_back(values->lookup(v));
  }

  plan::ProgramOp program = *planned->getOps<plan::ProgramOp>().begin();
  std::vector<int64_t> dims;
  for (auto &d : program.getDims().dims()) dims.push_back(evaluate(d));
  std::vector<std::unique_ptr<Storage>> storage;
  std::vector<void *> pointers;
  std::vector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>().begin(), program.getBody().getOps<plan::BufferOp>().end());
  for (auto buffer : buffers) {
    int64_t size = evaluate(buffer.getBytes().dims()[0]) * (buffer.getKind() == "per_thread" ? threads : 1);
    storage.push_back(std::make_unique<Storage>(size));
    pointers.push_back(storage.back()->data());
    std::string raw;
    if (buffer.getKind() == "weight") {
      auto packed = packWeight(*buffer.getValue(), buffer.getPacking());
      ASSERT_TRUE(bool(packed)) << llvm::toString(packed.takeError());
      raw = *packed;
      ASSERT_EQ(int64_t(raw.size()), size);
    }
    if (buffer.getKind() == "input") {
      auto packed = packWeight(reference::encode(inputs[buffer.getTensor()]), "raw");
      ASSERT_TRUE(bool(packed)) << llvm::toString(packed.takeError());
      raw = *packed;
      if (buffer.getPitch()) { // spread the rows of the cache over its room
        Dims logical = graph::dimsOf(cast<RankedTensorType>(buffer.getType())), physical = buffer.getPitch()->dims();
        size_t axis = 0;
        while (physical[axis] == logical[axis]) ++axis;
        int64_t outer = evaluate(elementCount(ArrayRef<Dim>(logical).take_front(axis)));
        int64_t have = raw.size() / std::max<int64_t>(outer, 1), step = size / std::max<int64_t>(outer, 1);
        for (int64_t o = 0; o < outer; ++o) memcpy(storage.back()->data() + o * step, raw.data() + o * have, have);
        raw.clear();
      }
    }
    memcpy(storage.back()->data(), raw.data(), raw.size());
  }
  if (options.linked)
    for (auto state : program->getAttrOfType<ArrayAttr>(plan::kStatesAttr).getAsRange<DictionaryAttr>())
      for (size_t i = 0; i < buffers.size(); ++i)
        for (size_t j = 0; j < buffers.size(); ++j)
          if (buffers[i].getKind() == "input" && buffers[i].getTensor() == state.getAs<IntegerAttr>("input").getInt() && buffers[j].getKind() == "output" &&
              buffers[j].getTensor() == state.getAs<IntegerAttr>("output").getInt())
            pointers[j] = pointers[i];

  Pool pool(threads);
  std::vector<int64_t> faults(threads, 0);
  std::vector<uint8_t> skip(4096);
  tare_code_args args{pointers.data(), dims.data(), threads, &pool, waitForAll, nullptr, nullptr, faults.data(), skip.data()};
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < threads; ++t) workers.emplace_back([&, t] { EXPECT_EQ(reinterpret_cast<tare_code_entry>(entry)(&args, t), 0); });
  for (auto &w : workers) w.join();
  bool faulted = std::any_of(faults.begin(), faults.end(), [](int64_t f) { return f != 0; });
  EXPECT_EQ(faulted, options.expectFault) << at;
  for (size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(storage[i]->intact()) << "buffer " << i << " was written outside of its bounds" << at;
  if (options.expectFault) return;

  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].getKind() != "output") continue;
    const reference::Tensor &want = expected[buffers[i].getTensor()];
    Type element = cast<RankedTensorType>(buffers[i].getType()).getElementType();
    const char *got = static_cast<const char *>(pointers[i]);
    int64_t row = 1, step = 1; // elements per outer index, logical and physical
    if (buffers[i].getPitch()) {
      Dims logical = graph::dimsOf(cast<RankedTensorType>(buffers[i].getType())), physical = buffers[i].getPitch()->dims();
      size_t axis = 0;
      while (physical[axis] == logical[axis]) ++axis;
      row = evaluate(elementCount(ArrayRef<Dim>(logical).drop_front(axis)));
      step = evaluate(elementCount(ArrayRef<Dim>(physical).drop_front(axis)));
    }
    int bad = 0;
    for (int64_t j = 0; j < want.elementCount() && bad < 3; ++j) {
      size_t where = row == step ? j : j / row * step + j % row;
      if (want.isFloat()) {
        double have = storedFloat(element, got, where), need = want.floats[j];
        bool same = (std::isnan(have) && std::isnan(need)) || have == need || std::abs(have - need) <= options.tolerance * (1 + std::abs(need));
        if (element.isF16() || element.isBF16()) same |= std::abs(have - need) <= (element.isF16() ? 1e-3 : 8e-3) * (1e-3 + std::abs(need));
        if (!same) ++bad;
        EXPECT_TRUE(same) << buffers[i].getName().str() << "[" << j << "] is " << have << ", not " << need << at;
      } else {
        int64_t have = storedInteger(element, got, where);
        if (have != want.ints[j]) ++bad;
        EXPECT_EQ(have, want.ints[j]) << buffers[i].getName().str() << "[" << j << "]" << at;
      }
    }
  }
}

} // namespace tare::test
