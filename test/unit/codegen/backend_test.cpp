// The back end on hand-written LLVM dialect: a GEMM with an epilogue hook runs from a read-only executable mapping, at every level this CPU has; the
// result does not depend on threads; what a flat section cannot hold is refused by name.
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/graph/Failure.h"
#include "runtime/code_abi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace {

// result = tanh(a[5,40] * b[40,45] + 1), a = buffer 0, b = buffer 1 (panel32), result = buffer 2; memset and an f16 round trip exercise the support functions.
constexpr char gemmModule[] = R"(
llvm.func @tare_gemm_f32(!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr)
llvm.func @tare_tanhf(f32) -> f32
llvm.func internal @epilogue(%env: !llvm.ptr, %tile: !llvm.ptr, %row: i64, %col: i64, %rows: i64, %cols: i64) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c32 = llvm.mlir.constant(32 : i64) : i64
  %n = llvm.mlir.constant(45 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  llvm.br ^rows(%c0 : i64)
^rows(%r: i64):
  %more_rows = llvm.icmp "slt" %r, %rows : i64
  llvm.cond_br %more_rows, ^cols(%c0 : i64), ^done
^cols(%c: i64):
  %more_cols = llvm.icmp "slt" %c, %cols : i64
  llvm.cond_br %more_cols, ^body, ^next_row
^body:
  %tr = llvm.mul %r, %c32 : i64
  %ti = llvm.add %tr, %c : i64
  %tp = llvm.getelementptr %tile[%ti] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %tp : !llvm.ptr -> f32
  %y = llvm.fadd %x, %one : f32
  %t = llvm.call @tare_tanhf(%y) : (f32) -> f32
  %gr = llvm.add %row, %r : i64
  %gm = llvm.mul %gr, %n : i64
  %gc = llvm.add %col, %c : i64
  %gi = llvm.add %gm, %gc : i64
  %op = llvm.getelementptr %env[%gi] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %t, %op : f32, !llvm.ptr
  %c_next = llvm.add %c, %c1 : i64
  llvm.br ^cols(%c_next : i64)
^next_row:
  %r_next = llvm.add %r, %c1 : i64
  llvm.br ^rows(%r_next : i64)
^done:
  llvm.return
}
llvm.func @tare_entry(%args: !llvm.ptr, %thread: i64) -> i64 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %m = llvm.mlir.constant(5 : i64) : i64
  %n = llvm.mlir.constant(45 : i64) : i64
  %k = llvm.mlir.constant(40 : i64) : i64
  %buffers = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %p1 = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %p2 : !llvm.ptr -> !llvm.ptr
  %p3 = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %threads = llvm.load %p3 : !llvm.ptr -> i64
  %fn = llvm.mlir.addressof @epilogue : !llvm.ptr
  llvm.call @tare_gemm_f32(%a, %k, %b, %m, %n, %k, %thread, %threads, %fn, %c) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return %zero : i64
}
)";

bool cpuHas(llvm::StringRef level) {
  if (level == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3");
  if (level == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4");
  if (level == "avx512-bf16") return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  return cpuHas("avx512-bf16") && __builtin_cpu_supports("amx-int8");
}

struct Backend : testing::Test {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    context.loadDialect<mlir::LLVM::LLVMDialect>();
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  const std::vector<std::string> levels = {"x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"};
};

std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST_F(Backend, RunsFromAReadOnlyMappingAtEveryLevel) {
  auto module = parse(gemmModule);
  ASSERT_TRUE(module);
  auto sections = tare::compileForLevels(*module, levels, 2);
  ASSERT_TRUE(bool(sections)) << messageOf(sections.takeError());
  ASSERT_EQ(sections->size(), levels.size());
  std::vector<float> a(5 * 40), b(2 * 40 * 32), c(5 * 45);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(int(i * 7 % 11) - 5) / 16;
  auto weight = [](int k, int n) { return float((k * 5 + n * 3) % 13 - 6) / 64; };
  for (int n = 0; n < 45; ++n)
    for (int k = 0; k < 40; ++k) b[(n / 32 * 40 + k) * 32 + n % 32] = weight(k, n);
  int ran = 0;
  for (const tare::CodeSection &section : *sections) {
    EXPECT_GT(section.textBytes, 0u);
    EXPECT_LT(section.bytes.size(), 200000u);
    EXPECT_FALSE(section.elf.empty());
    if (!cpuHas(section.level)) continue;
    ++ran;
    void *memory = mmap(nullptr, section.bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, section.bytes.data(), section.bytes.size());
    ASSERT_EQ(mprotect(memory, section.bytes.size(), PROT_READ | PROT_EXEC), 0);
    std::fill(c.begin(), c.end(), -9.0f);
    void *buffers[] = {a.data(), b.data(), c.data()};
    for (int64_t thread = 0; thread < 2; ++thread) {
      tare_code_args args = {buffers, nullptr, 2, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
      EXPECT_EQ(reinterpret_cast<tare_code_entry>(memory)(&args, thread), 0);
    }
    for (int m = 0; m < 5; ++m)
      for (int n = 0; n < 45; ++n) {
        double sum = 1;
        for (int k = 0; k < 40; ++k) sum += double(a[m * 40 + k]) * weight(k, n);
        ASSERT_NEAR(c[m * 45 + n], std::tanh(sum), 1e-6) << section.level << " " << m << " " << n;
      }
    munmap(memory, section.bytes.size());
  }
  EXPECT_GT(ran, 0);
}

TEST_F(Backend, SameBytesForAnyThreadCount) {
  auto module = parse(gemmModule);
  auto one = tare::compileForLevels(*module, levels, 1), four = tare::compileForLevels(*module, levels, 4);
  ASSERT_TRUE(one && four);
  for (size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ((*one)[i].bytes, (*four)[i].bytes);
    EXPECT_EQ((*one)[i].elf, (*four)[i].elf);
  }
}

TEST_F(Backend, NamesUndefinedSymbols) {
  auto module = parse("llvm.func @nobody()\nllvm.func @tare_entry(%a: !llvm.ptr, %t: i64) -> i64 { llvm.call @nobody() : () -> ()\n llvm.return %t : i64 }");
  auto sections = tare::compileForLevels(*module, {"x86-64-v3"}, 1);
  ASSERT_FALSE(bool(sections));
  EXPECT_NE(messageOf(sections.takeError()).find("undefined symbol nobody"), std::string::npos);
}

TEST_F(Backend, RefusesWritableData) {
  auto module = parse(R"(llvm.mlir.global internal @counter(0 : i64) : i64
llvm.func @tare_entry(%a: !llvm.ptr, %t: i64) -> i64 {
  %p = llvm.mlir.addressof @counter : !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> i64
  %w = llvm.add %v, %t : i64
  llvm.store %w, %p : i64, !llvm.ptr
  llvm.return %v : i64
})");
  auto sections = tare::compileForLevels(*module, {"x86-64-v3"}, 1);
  ASSERT_FALSE(bool(sections));
  EXPECT_NE(messageOf(sections.takeError()).find("writable data"), std::string::npos);
}

TEST_F(Backend, RefusesAddressesInConstants) {
  auto module = parse(R"(llvm.func @f(%t: i64) -> i64 { llvm.return %t : i64 }
llvm.mlir.global internal constant @table() : !llvm.array<2 x ptr> {
  %u = llvm.mlir.undef : !llvm.array<2 x ptr>
  %f = llvm.mlir.addressof @f : !llvm.ptr
  %e = llvm.mlir.addressof @tare_entry : !llvm.ptr
  %v = llvm.insertvalue %f, %u[0] : !llvm.array<2 x ptr>
  %w = llvm.insertvalue %e, %v[1] : !llvm.array<2 x ptr>
  llvm.return %w : !llvm.array<2 x ptr>
}
llvm.func @tare_entry(%a: !llvm.ptr, %t: i64) -> i64 {
  %p = llvm.mlir.addressof @table : !llvm.ptr
  %q = llvm.getelementptr %p[%t] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %r = llvm.load %q : !llvm.ptr -> i64
  llvm.return %r : i64
})");
  auto sections = tare::compileForLevels(*module, {"x86-64-v3"}, 1);
  ASSERT_FALSE(bool(sections));
  const std::string message = messageOf(sections.takeError());
  EXPECT_TRUE(message.find("writable data") != std::string::npos || message.find("not PC-relative") != std::string::npos) << message;
}

TEST_F(Backend, RefusesUnknownLevels) {
  auto module = parse("llvm.func @tare_entry(%a: !llvm.ptr, %t: i64) -> i64 { llvm.return %t : i64 }");
  auto sections = tare::compileForLevels(*module, {"z80"}, 1);
  ASSERT_FALSE(bool(sections));
  llvm::handleAllErrors(sections.takeError(), [](const tare::Failure &failure) {
    EXPECT_EQ(failure.code, tare::ExitCode::Usage);
    EXPECT_NE(failure.message.find("z80"), std::string::npos);
  });
}

} // namespace
