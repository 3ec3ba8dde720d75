// From fused IR to an engine file and through the runtime: names, defaults, constraints, states, weights, determinism, errors that leave no file.
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/engine/EngineWriter.h"
#include "compiler/graph/Graph.h"
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "runtime/EngineReader.h"
#include "runtime/engine_generated.h"
#include "runtime/tare.hpp"
#include "test/support/TempDir.h"
#include "gtest/gtest.h"

using namespace tare;
using namespace tare::test;

// y = (x * mask) W + x, with W = 8x8 of 0.5; present = concat(past, y as [b, n, 8]) along axis 1. The mask is optional.
static const char *const kModel = R"(
!x = tensor<?x?x8xf32, #graph.dims<["b", "n", 8]>>
!m = tensor<?x?x1xf32, #graph.dims<["b", "n", 1]>>
!p = tensor<?x?x8xf32, #graph.dims<["b", "past", 8]>>
!q = tensor<?x?x8xf32, #graph.dims<["b", "past + n", 8]>>
module attributes {graph.constraints = [{kind = "at_most", a = #graph.dims<["past + n"]>, b = #graph.dims<[32]>, message = "32 positions"}]} {
func.func @main(%x: !x {graph.name = "x"}, %mask: !m {graph.name = "mask", graph.default = "ones"}, %past: !p {graph.name = "past"}) -> (!x {graph.name = "y"}, !q {graph.name = "present"}) {
  %w = graph.constant "w" dense<0.5> : tensor<8x8xf32> -> tensor<8x8xf32>
  %0 = graph.group <pointwise>(%x, %mask) : (!x, !m) -> !x {
  ^bb0(%a: !x, %b: !m):
    %1 = graph.binary <mul> %a, %b : !x, !m -> !x loc("/mask/Mul")
    graph.yield %1 : !x
  }
  %2 = graph.group <gemm>(%0, %w, %x) : (!x, tensor<8x8xf32>, !x) -> !x {
  ^bb0(%a: !x, %b: tensor<8x8xf32>, %c: !x):
    %1 = graph.matmul %a, %b : !x, tensor<8x8xf32> -> !x loc("/layers.0/fc/MatMul")
    %4 = graph.binary <add> %1, %c : !x, !x -> !x
    graph.yield %4 : !x
  }
  %3 = graph.group <append>(%past, %2) : (!p, !x) -> !q {
  ^bb0(%a: !p, %b: !x):
    %1 = graph.concat 1(%a, %b) : (!p, !x) -> !q loc("/cache/Concat")
    graph.yield %1 : !q
  }
  return %2, %3 : !x, !q
}
}
)";

namespace {
class Writer : public ::testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<graph::GraphDialect, plan::PlanDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context);
    ASSERT_TRUE(module);
    mlir::PassManager passes(&context);
    passes.addPass(createPlanBuffersPass());
    ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
    auto code = codegen::emitKernels(*module);
    ASSERT_TRUE(static_cast<bool>(code)) << llvm::toString(code.takeError());
    auto sections = compileForLevels(**code, {"x86-64-v3", "x86-64-v4"}, 1);
    ASSERT_TRUE(static_cast<bool>(sections)) << llvm::toString(sections.takeError());
    contents.planned = *module;
    contents.code = std::move(*sections);
    contents.certificate = "{}", contents.configuration = "pruned_layers: []\n", contents.report = "{\"tare\": 1}";
    contents.prunedLayers = {"layers.7.pos_enc"}, contents.zeroRate = 0.25;
  }
  void write(const std::string &path) {
    auto error = writeEngine(path, contents);
    ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  EngineContents contents;
  TempDir dir;
};
/// y of one row: 0.5 * sum(x * mask) + x.
std::vector<float> expected(const std::vector<float> &x, float mask = 1) {
  std::vector<float> y(x.size());
  for (size_t row = 0; row < x.size(); row += 8) {
    float sum = 0;
    for (size_t i = 0; i < 8; ++i) sum += x[row + i] * mask;
    for (size_t i = 0; i < 8; ++i) y[row + i] = 0.5f * sum + x[row + i];
  }
  return y;
}
std::vector<float> floats(const tare_tensor &t) {
  auto *from = static_cast<const float *>(t.data);
  return {from, from + t.bytes / 4};
}
std::vector<float> counting(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 13);
  return x;
}
} // namespace

TEST_F(Writer, TheEngineRunsWithDefaultsStatesAndConstraints) {
  write(dir.path("e.tare"));
  for (const char *level : {"x86-64-v3", "x86-64-v4"}) {
    tare_options options{};
    options.max_level = level;
    api::Engine engine(dir.path("e.tare"), options);
    auto inputs = engine.inputs();
    ASSERT_EQ(inputs.size(), 3u);
    EXPECT_STREQ(inputs[1].default_kind, "ones");
    EXPECT_STREQ(engine.outputs()[1].name, "present");
    EXPECT_STREQ(engine.outputs()[1].dims[1], "past + n");
    tare_context_options contextOptions{};
    contextOptions.threads = 2, contextOptions.profile = 1;
    api::Context context(engine, contextOptions);
    std::vector<float> x = counting(2 * 3 * 8), past(2 * 8, 9);
    context.setInput("x", x, {2, 3, 8});
    context.setInput("past", past, {2, 1, 8});
    context.run();
    EXPECT_EQ(floats(context.output("y")), expected(x));
    auto present = floats(context.output("present"));
    ASSERT_EQ(present.size(), 2u * 4 * 8);
    EXPECT_EQ(present[0], 9);
    EXPECT_EQ(present[8], expected(x)[0]);
    EXPECT_EQ(present[32], 9);
    EXPECT_EQ(present[40], expected(x)[24]);
    std::vector<float> mask(6, 0);
    context.setInput("mask", mask, {2, 3, 1});
    context.run();
    EXPECT_EQ(floats(context.output("y")), expected(x, 0));
    EXPECT_NE(context.profile().find("/layers.0/fc/MatMul"), std::string::npos);
    tare_estimate estimate = context.estimate();
    EXPECT_GE(estimate.flops, 2 * 6 * 8 * 8);
    EXPECT_EQ(estimate.zero_rate, 0.25);
    std::vector<float> longer = counting(32 * 8);
    context.clearInput("mask");
    context.setInput("x", longer, {1, 32, 8});
    context.setInput("past", past, {1, 2, 8});
    try {
      context.run();
      FAIL() << "a constraint was not checked";
    } catch (const api::Failure &failure) {
      EXPECT_EQ(failure.code, TARE_REFUSED);
      EXPECT_NE(std::string(failure.what()).find("32 positions"), std::string::npos) << failure.what();
    }
  }
}

TEST_F(Writer, BuffersAlignedToOneElementOnly) {
  write(dir.path("e.tare"));
  api::Engine engine(dir.path("e.tare"));
  api::Context context(engine);
  std::vector<float> x = counting(3 * 8), empty(1), in(4 * 8), out(4 * 8);
  for (size_t shift = 1; shift < 4; ++shift) {
    std::copy(x.begin(), x.end(), in.begin() + long(shift));
    int64_t shape[] = {1, 3, 8};
    context.setInput("x", {TARE_F32, 3, shape, in.data() + shift, x.size() * 4});
    context.setInput("past", empty, {1, 0, 8});
    context.setOutput("y", {TARE_F32, 0, nullptr, out.data() + shift, x.size() * 4});
    context.run();
    EXPECT_EQ(std::vector<float>(out.begin() + long(shift), out.begin() + long(shift + x.size())), expected(x));
  }
}

TEST_F(Writer, LinkedStateTokenByTokenEqualsTheWholePass) {
  write(dir.path("e.tare"));
  api::Engine engine(dir.path("e.tare"));
  api::Context whole(engine), linked(engine);
  std::vector<float> x = counting(5 * 8), empty(1);
  whole.setInput("x", x, {1, 5, 8});
  whole.setInput("past", empty, {1, 0, 8});
  whole.run();
  linked.linkState("past", "present", 5);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<float> row(x.begin() + long(8 * i), x.begin() + long(8 * i + 8));
    linked.setInput("x", row, {1, 1, 8});
    linked.run();
    EXPECT_EQ(floats(linked.output("y")), expected(row));
  }
  linked.setInput("x", x, {1, 5, 8});
  EXPECT_THROW(linked.run(), api::Failure); // the cache is full
  // A second context that is linked in the middle of nothing sees the rows that the first pass wrote: compare through the unlinked output.
  EXPECT_EQ(floats(whole.output("present")), expected(x));
}

TEST_F(Writer, CudaLaunchesSayWhatEachKernelGets) {
  cuda::Program program;
  auto kernels = cuda::printKernels(*module);
  ASSERT_TRUE(static_cast<bool>(kernels)) << llvm::toString(kernels.takeError());
  program.kernels = std::move(*kernels);
  ASSERT_EQ(program.kernels.size(), 3u);
  program.images = {{"sm_80", {"\x7f" "ELF one", "\x7f" "ELF two", std::string(100, 'x')}, {}}, {"compute_80", {std::string("ptx\0", 4), std::string("ptx\0", 4), std::string("ptx\0", 4)}, {}}};
  contents.cuda = &program;
  contents.code.clear(); // CUDA alone is an engine, too
  write(dir.path("e.tare"));
  auto file = EngineFile::open(dir.path("e.tare").c_str(), true);
  ASSERT_TRUE(static_cast<bool>(file));
  const fb::Plan &plan = *fb::GetPlan(file->find(format::SectionKind::Plan)->data);
  EXPECT_EQ(plan.code()->size(), 0u);
  ASSERT_NE(plan.cuda(), nullptr);
  EXPECT_EQ(plan.cuda()->precision()->str(), "f32");
  auto dim = [&](uint32_t index) { return plan.dims()->Get(index)->text()->str(); };
  auto launch = [&](uint32_t i) {
    auto *l = plan.cuda()->launches()->Get(i);
    std::string text = plan.cuda()->kernels()->Get(l->kernel())->name()->str() + " (" + dim(l->grid()->Get(0)) + ", " + dim(l->grid()->Get(1)) + ", " + dim(l->grid()->Get(2)) + ")";
    for (auto *a : *l->arguments()) text += std::string(" ") + fb::EnumNameCudaArgumentKind(a->kind()) + ":" + (a->kind() == fb::CudaArgumentKind::Dim ? dim(a->value()) : std::to_string(a->value()));
    return text;
  };
  ASSERT_EQ(plan.cuda()->launches()->size(), 3u);
  // The kernels' parameters, in order: x, mask, y and two symbols; x, W, residual, y and two symbols; past, new rows, present, symbols, then the two capacities.
  for (auto [i, arguments] : {std::pair(0u, "Buffer:0 Buffer:1 Buffer:2 Dim:b Dim:n"), std::pair(1u, "Buffer:0 Buffer:1 Buffer:2 Buffer:3 Dim:b Dim:n")}) {
    std::string text = launch(i);
    EXPECT_TRUE(llvm::StringRef(text).ends_with(std::string(", 1) ") + arguments)) << text;
  }
  std::string append = launch(2);
  EXPECT_NE(append.find("Buffer:0 Buffer:1 Buffer:2 "), std::string::npos) << append;
  EXPECT_NE(append.find("capacity.input.0"), std::string::npos) << append;
  EXPECT_LT(append.find("Dim:past"), append.find("Dim:capacity")) << append;
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(plan.cuda()->launches()->Get(i)->step(), i);
  auto *image = plan.cuda()->images()->Get(0);
  EXPECT_EQ(image->arch()->str(), "sm_80");
  const Section &module = file->sections()[image->section()];
  EXPECT_EQ(module.kind, format::SectionKind::CudaModule);
  for (uint32_t k = 0; k < 3; ++k)
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(module.data) + image->offsets()->Get(k), image->sizes()->Get(k)), program.images[0].binaries[k]);
  EXPECT_EQ(module.offset % 64, 0u);
  EXPECT_EQ(image->offsets()->Get(1), 64u);
}

TEST_F(Writer, BytesAreTheSameEverywhere) {
  TempDir other;
  write(dir.path("a.tare"));
  contents.planned = module->clone();
  mlir::OwningOpRef<mlir::ModuleOp> owner(contents.planned);
  write(other.path("b.tare"));
  EXPECT_EQ(readFile(dir.path("a.tare")), readFile(other.path("b.tare")));
}

TEST_F(Writer, AFailureLeavesTheOldEngine) {
  write(dir.path("e.tare"));
  std::string good = readFile(dir.path("e.tare"));
  contents.code.front().textBytes = uint64_t(1) << 40; // the runtime's loader refuses this
  auto error = writeEngine(dir.path("e.tare"), contents);
  ASSERT_TRUE(static_cast<bool>(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("plan has a bad code size"), std::string::npos);
  EXPECT_EQ(readFile(dir.path("e.tare")), good);
  contents.planned = nullptr;
  mlir::OwningOpRef<mlir::ModuleOp> none(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  contents.planned = *none;
  error = writeEngine(dir.path("new.tare"), contents);
  ASSERT_TRUE(static_cast<bool>(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("exactly one plan.program"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir.path("new.tare")));
}
