// A small engine for tests of the runtime and of the engine file: plan and weights from here, machine code from test/unit/runtime/code.c. In: changes to the
// plan. Out: a file written by the real SectionWriter, or its bytes. Also: the reference result, and re-hashing after a hostile edit.
#pragma once
#include "compiler/engine/SectionWriter.h"
#include "runtime/Sha256.h"
#include "runtime/engine_generated.h"
#include "runtime/tare.h"
#include "test/support/TempDir.h"
#include "test/support/TestEngineResult.h"
#include "gtest/gtest.h"
#include <cstring>
#include <functional>
#include <vector>

namespace tare::test {

inline constexpr float kWeights[4] = {2, 3, -1, 0.5f};
inline constexpr int64_t kPush = 0, kSymbol = 1, kAdd = 2, kMul = 3;

/// The plan that code.c expects. Dims 0-4 are the symbols B S P CIN COUT, 5 P+S, 6-12 sizes in bytes, 13 the number 4.
inline fb::PlanT testPlan(uint32_t codeSection, uint64_t textBytes) {
  fb::PlanT plan;
  plan.symbols = {"batch", "sequence", "past", "capacity.input.0", "capacity.output.0"};
  auto dim = [&](std::vector<int64_t> code, std::string text) {
    auto d = std::make_unique<fb::DimProgramT>();
    d->code = std::move(code), d->text = std::move(text);
    plan.dims.push_back(std::move(d));
  };
  for (int64_t i = 0; i < 5; ++i) dim({kSymbol, i}, plan.symbols[static_cast<size_t>(i)]);
  dim({kSymbol, 2, kSymbol, 1, kAdd, 0}, "past + sequence");
  dim({kSymbol, 0, kSymbol, 1, kMul, 0, kPush, 4, kMul, 0}, "4*batch*sequence");
  dim({kSymbol, 2, kSymbol, 1, kAdd, 0, kSymbol, 0, kMul, 0, kPush, 8, kMul, 0}, "8*batch*(past + sequence)");
  dim({kSymbol, 0, kSymbol, 3, kMul, 0, kPush, 16, kMul, 0}, "16*batch*capacity.input.0");
  dim({kSymbol, 0, kSymbol, 4, kMul, 0, kPush, 16, kMul, 0}, "16*batch*capacity.output.0");
  dim({kPush, 16}, "16");
  dim({kPush, 64}, "64");
  dim({kPush, 100}, "100");
  dim({kPush, 4}, "4");
  auto tensor = [](std::string name, fb::DType dtype, std::vector<uint32_t> dims, const char *kind) {
    auto t = std::make_unique<fb::TensorT>();
    t->name = std::move(name), t->dtype = dtype, t->dims = std::move(dims);
    if (kind) t->optional = true, t->default_kind = kind;
    return t;
  };
  plan.inputs.push_back(tensor("x", fb::DType::F32, {0, 1}, nullptr));
  plan.inputs.push_back(tensor("mask", fb::DType::I64, {0, 5}, "ones"));
  plan.inputs.push_back(tensor("cache", fb::DType::F32, {0, 2, 13}, "empty"));
  plan.outputs.push_back(tensor("y", fb::DType::F32, {0, 1}, nullptr));
  plan.outputs.push_back(tensor("new_cache", fb::DType::F32, {0, 5, 13}, nullptr));
  auto buffer = [&](fb::BufferKind kind, uint32_t bytes, int tensorIndex, uint32_t first, uint32_t last) {
    auto b = std::make_unique<fb::BufferT>();
    b->kind = kind, b->bytes = bytes, b->tensor = tensorIndex, b->first_step = first, b->last_step = last;
    plan.buffers.push_back(std::move(b));
  };
  buffer(fb::BufferKind::Input, 6, 0, 0, 2);
  buffer(fb::BufferKind::Input, 7, 1, 0, 2);
  buffer(fb::BufferKind::Input, 8, 2, 0, 2);
  buffer(fb::BufferKind::Output, 6, 0, 2, 2);
  buffer(fb::BufferKind::Output, 9, 1, 1, 2);
  buffer(fb::BufferKind::Weight, 10, -1, 0, 0);
  buffer(fb::BufferKind::Arena, 6, -1, 0, 1);
  buffer(fb::BufferKind::PerThread, 11, -1, 2, 2);
  auto step = [&](std::string name, std::vector<uint32_t> buffers, uint32_t operands) {
    auto s = std::make_unique<fb::StepT>();
    s->kernel = "kernel_" + name, s->name = std::move(name), s->kind = "pointwise", s->buffers = std::move(buffers), s->operand_count = operands;
    s->flops = s->bytes = 12;
    plan.steps.push_back(std::move(s));
  };
  step("scale", {0, 5, 6}, 2);
  step("append", {2, 6, 5, 4}, 3);
  step("sum \"quoted\"", {0, 1, 4, 3}, 3);
  auto constraint = std::make_unique<fb::ConstraintT>();
  constraint->kind = fb::ConstraintKind::AtMost, constraint->a = 1, constraint->b = 12, constraint->message = "the model knows 100 positions";
  plan.constraints.push_back(std::move(constraint));
  auto state = std::make_unique<fb::StateT>();
  state->input = 2, state->output = 1, state->axis = 1, state->input_capacity_symbol = 3, state->output_capacity_symbol = 4;
  plan.states.push_back(std::move(state));
  auto code = std::make_unique<fb::CodeVariantT>();
  code->level = "x86-64-v3", code->section = codeSection, code->text_bytes = textBytes;
  plan.code.push_back(std::move(code));
  plan.full_flops = plan.full_bytes = plan.flops = plan.bytes = 12;
  plan.pruned_layers = {"layers.1.pos_enc"};
  plan.zero_rate = 0.5;
  return plan;
}

/// What the tests' CUDA module holds: per kernel 64 bytes, "image 0", "image 1", ...; as PTX each ends with a zero.
inline std::string testCudaModule() {
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    std::string image = "image " + std::to_string(i);
    bytes += image + std::string(64 - image.size(), '\0');
  }
  return bytes;
}
/// The three steps of testPlan as CUDA launches, of kernels that only a fake driver can run; the second step is two launches.
inline std::unique_ptr<fb::CudaT> testCuda(uint32_t section) {
  auto cuda = std::make_unique<fb::CudaT>();
  cuda->precision = "f32";
  for (int i = 0; i < 3; ++i) {
    auto kernel = std::make_unique<fb::CudaKernelT>();
    kernel->name = "kernel_" + std::to_string(i), kernel->threads = 128, kernel->shared_bytes = 1024 * static_cast<uint32_t>(i);
    cuda->kernels.push_back(std::move(kernel));
  }
  using Kind = fb::CudaArgumentKind;
  auto launch = [&](uint32_t step, uint32_t kernel, std::vector<fb::CudaArgument> arguments) {
    auto l = std::make_unique<fb::CudaLaunchT>();
    l->step = step, l->kernel = kernel, l->grid = {0, 1, 13}, l->arguments = std::move(arguments);
    cuda->launches.push_back(std::move(l));
  };
  launch(0, 0, {{Kind::Buffer, 0}, {Kind::Buffer, 1}, {Kind::Buffer, 2}, {Kind::Dim, 0}});
  launch(1, 1, {{Kind::Buffer, 0}, {Kind::Buffer, 3}, {Kind::Dim, 3}, {Kind::Dim, 4}});
  launch(1, 2, {{Kind::Buffer, 1}, {Kind::Buffer, 3}, {Kind::Fault, 0}, {Kind::Step, 0}});
  launch(2, 0, {{Kind::Buffer, 2}, {Kind::Buffer, 3}});
  for (const char *arch : {"sm_80", "compute_90"}) {
    auto image = std::make_unique<fb::CudaImageT>();
    image->arch = arch, image->section = section, image->offsets = {0, 64, 128}, image->sizes = {64, 64, 64};
    cuda->images.push_back(std::move(image));
  }
  return cuda;
}

struct EngineChanges {
  std::function<void(fb::PlanT &)> plan = {};
  std::string weights = {}; ///< replaces the 16 bytes of w
  Signer signer = {};
  std::string cudaModule = {}; ///< not empty: such a section, and Plan.cuda = testCuda
  bool cpu = true;        ///< false: no machine code
};

inline void writeTestEngine(const std::string &path, const EngineChanges &changes = {}) {
  std::string code = readFile(TARE_TEST_CODE);
  ASSERT_FALSE(code.empty());
  auto file = SectionWriter::create(path);
  ASSERT_TRUE(static_cast<bool>(file)) << llvm::toString(file.takeError());
  auto check = [](llvm::Error error) { EXPECT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error)); };
  check(file->begin(format::SectionKind::Weights, format::kPage));
  check(file->append(changes.weights.empty() ? std::string(reinterpret_cast<const char *>(kWeights), sizeof kWeights) : changes.weights));
  ASSERT_TRUE(static_cast<bool>(file->end()));
  uint32_t codeSection = 0;
  if (changes.cpu) {
    auto section = file->add(format::SectionKind::Code, format::kPage, code);
    ASSERT_TRUE(static_cast<bool>(section));
    codeSection = *section;
  }
  fb::PlanT plan = testPlan(codeSection, code.size());
  if (!changes.cpu) plan.code.clear();
  if (!changes.cudaModule.empty()) {
    auto section = file->add(format::SectionKind::CudaModule, 64, changes.cudaModule);
    ASSERT_TRUE(static_cast<bool>(section));
    plan.cuda = testCuda(*section);
  }
  if (changes.plan) changes.plan(plan);
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  ASSERT_TRUE(static_cast<bool>(file->add(format::SectionKind::Plan, 64, llvm::StringRef(reinterpret_cast<char *>(builder.GetBufferPointer()), builder.GetSize()))));
  ASSERT_TRUE(static_cast<bool>(file->add(format::SectionKind::Configuration, 64, "pruned_layers: [layers.1.pos_enc]\n")));
  check(file->finish(changes.signer));
}

/// A bad plan must be written past the writer's own check: a good engine's file whose plan is replaced, with all hashes made right again.
inline std::string engineBytes(const EngineChanges &changes = {}) {
  TempDir dir;
  EngineChanges good = changes;
  good.plan = nullptr;
  writeTestEngine(dir.path("e.tare"), good);
  return readFile(dir.path("e.tare"));
}

inline format::SectionEntry *table(std::string &bytes) { return reinterpret_cast<format::SectionEntry *>(bytes.data() + sizeof(format::Header)); }
inline format::Header &header(std::string &bytes) { return *reinterpret_cast<format::Header *>(bytes.data()); }

/// Header and table hash after an edit of them.
inline void rehashHeader(std::string &bytes) {
  Sha256 hash;
  hash.update(bytes.data(), offsetof(format::Header, hash));
  hash.update(table(bytes), header(bytes).sectionCount * sizeof(format::SectionEntry));
  hash.finish(header(bytes).hash);
}

/// Engine bytes with a changed plan and valid hashes. The plan is moved to the end of the file, where it may have any size.
inline std::string hostilePlan(const std::function<void(fb::PlanT &)> &change, const EngineChanges &changes = {}) {
  std::string bytes = engineBytes(changes);
  uint32_t count = header(bytes).sectionCount, planIndex = 0, codeIndex = 0, cudaIndex = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (table(bytes)[i].kind == static_cast<uint32_t>(format::SectionKind::Plan)) planIndex = i;
    if (table(bytes)[i].kind == static_cast<uint32_t>(format::SectionKind::Code)) codeIndex = i;
    if (table(bytes)[i].kind == static_cast<uint32_t>(format::SectionKind::CudaModule)) cudaIndex = i;
  }
  fb::PlanT plan = testPlan(codeIndex, table(bytes)[codeIndex].bytes);
  if (cudaIndex) plan.cuda = testCuda(cudaIndex);
  if (!changes.cpu) plan.code.clear();
  change(plan);
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  bytes.resize(table(bytes)[planIndex].offset); // plan and configuration are the last two
  bytes.append(reinterpret_cast<char *>(builder.GetBufferPointer()), builder.GetSize());
  auto &entry = table(bytes)[planIndex];
  entry.bytes = builder.GetSize();
  Sha256::of(bytes.data() + entry.offset, entry.bytes, entry.hash);
  memset(&table(bytes)[planIndex + 1], 0, sizeof(format::SectionEntry));
  header(bytes).sectionCount = planIndex + 1, header(bytes).fileBytes = bytes.size();
  rehashHeader(bytes);
  return bytes;
}

} // namespace tare::test
