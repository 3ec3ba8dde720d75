// Hostile engines with valid hashes (bad-inputs B72): section tables and plans that lie. All are refused before anything is used.
#include "runtime/Validate.h"
#include "test/support/TestEngine.h"
#include <random>

using namespace tare::test;
using namespace tare;
using format::SectionEntry;

namespace {
std::string refusal(const std::string &bytes) {
  tare_error error;
  tare_engine_t *engine = tare_engine_open_memory(bytes.data(), bytes.size(), nullptr, &error);
  tare_engine_close(engine);
  if (engine) return "";
  EXPECT_TRUE(error.code == TARE_REFUSED || error.code == TARE_LIMIT) << error.code << " " << error.message;
  return error.message;
}
struct TableCase { const char *name; std::function<void(std::string &)> change; const char *says; };
struct PlanCase { const char *name; std::function<void(fb::PlanT &)> change; const char *says; };
} // namespace

TEST(Hostile, SectionTables) {
  const TableCase cases[] = {
      {"overlap", [](std::string &b) { table(b)[2].offset = table(b)[1].offset, table(b)[2].alignment = 64; }, "section overlaps the one before it: section 2"},
      {"into header", [](std::string &b) { table(b)[0].offset = 64, table(b)[0].alignment = 64; }, "section overlaps the header"},
      {"huge size", [](std::string &b) { table(b)[1].bytes = uint64_t(1) << 60; }, "section lies outside of the file"},
      {"wrapping size", [](std::string &b) { table(b)[1].bytes = UINT64_MAX - 10; }, "section lies outside of the file"},
      {"alignment 0", [](std::string &b) { table(b)[1].alignment = 0; }, "section alignment is wrong"},
      {"alignment 2^31", [](std::string &b) { table(b)[1].alignment = 1u << 31; }, "section alignment is wrong"},
      {"alignment 48", [](std::string &b) { table(b)[1].alignment = 48; }, "section alignment is wrong"},
      {"misaligned", [](std::string &b) { table(b)[1].offset += 1; }, "section alignment is wrong"},
      {"unknown kind", [](std::string &b) { table(b)[1].kind = 77; }, "unknown section kind"},
      {"kind 0", [](std::string &b) { table(b)[1].kind = 0; }, "unknown section kind"},
      {"reserved", [](std::string &b) { table(b)[1].reserved = 1; }, "reserved field is not zero"},
      {"hole", [](std::string &b) { table(b)[1].alignment = 8, table(b)[1].bytes = 0; }, "unreferenced bytes before section"},
      {"count 0", [](std::string &b) { header(b).sectionCount = 0; }, "engine header is wrong"},
      {"count 2^32-1", [](std::string &b) { header(b).sectionCount = ~0u; }, "engine header is wrong"},
      {"header size", [](std::string &b) { header(b).headerBytes = 128; }, "engine header is wrong"},
      {"file size", [](std::string &b) { header(b).fileBytes += 8; }, "engine header is wrong"},
      {"no plan", [](std::string &b) { table(b)[3].kind = 7; }, "engine has no plan"},
      {"no code", [](std::string &b) { table(b)[2].kind = 8; }, "engine has no code"},
      {"two plans", [](std::string &b) { table(b)[4].kind = 1; }, "engine has a section twice: plan"},
      {"no checksums", [](std::string &b) { table(b)[1].kind = 8; }, "engine has weights without checksums"},
      {"no weights", [](std::string &b) { table(b)[0].kind = 8; }, "engine has weights without checksums, or checksums without weights"},
      {"bad signature size", [](std::string &b) { table(b)[4].kind = 9; }, "signature has a wrong size"},
      {"section hash", [](std::string &b) { table(b)[3].hash[0] ^= 1; }, "hash mismatch: section plan was changed"},
      {"weights hash", [](std::string &b) { table(b)[1].hash[0] ^= 1; }, "hash mismatch: section weight checksums was changed"}};
  std::string good = engineBytes();
  ASSERT_EQ(refusal(good), "");
  ASSERT_EQ(header(good).sectionCount, 5u); // weights, checksums, code, plan, configuration
  for (auto &c : cases) {
    std::string bytes = good;
    c.change(bytes);
    if (header(bytes).sectionCount == 5) rehashHeader(bytes);
    std::string message = refusal(bytes);
    EXPECT_EQ(message.rfind(c.says, 0), 0u) << c.name << ": " << message;
  }
}

TEST(Hostile, Plans) {
  auto code = [](fb::PlanT &p, size_t dim, std::vector<int64_t> words) { p.dims[dim]->code = std::move(words); };
  auto checks = [](fb::PlanT &p) -> fb::ChecksT & { // valid ones: each case breaks one thing
    auto anchors = std::make_unique<fb::TensorT>();
    anchors->name = "anchors", anchors->dtype = fb::DType::I32, anchors->dims = {0, 2}, anchors->optional = true, anchors->default_kind = "empty";
    p.inputs.push_back(std::move(anchors));
    p.checks = std::make_unique<fb::ChecksT>();
    p.checks->anchors = static_cast<uint32_t>(p.inputs.size() - 1), p.checks->batch = 0, p.checks->tokens = 1, p.checks->past = 2, p.checks->window = 3;
    p.checks->items.push_back(std::make_unique<fb::CheckT>());
    p.checks->items[0]->heads = 3, p.checks->items[0]->precision = "f32";
    return *p.checks;
  };
  const PlanCase cases[] = {
      {"anchors", [&](fb::PlanT &p) { checks(p).anchors = 99; }, "plan has bad fidelity checks: anchors: input 99"},
      {"anchors dtype", [&](fb::PlanT &p) { checks(p), p.inputs.back()->dtype = fb::DType::I64; }, "plan has bad fidelity checks: anchors: input 3"},
      {"anchors of another batch", [&](fb::PlanT &p) { checks(p), p.inputs.back()->dims[0] = 1; }, "plan has bad fidelity checks: anchors: input 3"},
      {"mask", [&](fb::PlanT &p) { checks(p).mask = 2; }, "plan has bad fidelity checks: mask: input 2"},
      {"window", [&](fb::PlanT &p) { checks(p).window = 0; }, "plan has bad fidelity checks: window 0"},
      {"heads", [&](fb::PlanT &p) { checks(p).items[0]->heads = 33; }, "plan has bad fidelity checks: check 0"},
      {"check sizes", [&](fb::PlanT &p) { checks(p).tokens = 99; }, "plan has an index out of range: size of the fidelity checks: dim 99"},
      {"check buffer", [&](fb::PlanT &p) { checks(p), p.buffers[6]->kind = fb::BufferKind::Check, p.buffers[6]->tensor = 1; }, "plan has an index out of range: fidelity check of buffer 6"},
      {"check written", [&](fb::PlanT &p) { checks(p), p.buffers[6]->kind = fb::BufferKind::Check, p.buffers[6]->tensor = 0; }, "plan writes to an input or weight: step 0"},
      {"stack underflow", [&](fb::PlanT &p) { code(p, 5, {0, 1, 2, 0}); }, "plan has a bad dim program: dim 5: stack underflow"},
      {"stack overflow", [&](fb::PlanT &p) { std::vector<int64_t> w; for (int i = 0; i < 100; ++i) w.insert(w.end(), {0, 1}); code(p, 5, w); }, "plan has a bad dim program: dim 5: stack overflow"},
      {"division by 0", [&](fb::PlanT &p) { code(p, 5, {0, 1, 0, 0, 6, 0}); }, "plan has a bad dim program: dim 5: division by zero"},
      {"empty program", [&](fb::PlanT &p) { code(p, 5, {}); }, "plan has a bad dim program: dim 5: bad length"},
      {"odd program", [&](fb::PlanT &p) { code(p, 5, {0}); }, "plan has a bad dim program: dim 5: bad length"},
      {"long program", [&](fb::PlanT &p) { code(p, 5, std::vector<int64_t>(10000)); }, "plan has a bad dim program: dim 5: bad length"},
      {"symbol", [&](fb::PlanT &p) { code(p, 5, {1, 5}); }, "plan has a bad dim program: dim 5: symbol index out of range"},
      {"negative symbol", [&](fb::PlanT &p) { code(p, 5, {1, INT64_MIN}); }, "plan has a bad dim program: dim 5: symbol index out of range"},
      {"opcode", [&](fb::PlanT &p) { code(p, 5, {0, 1, 0, 1, 99, 0}); }, "plan has a bad dim program: dim 5: unknown opcode"},
      {"estimate", [](fb::PlanT &p) { p.full_bytes = 1000; }, "plan has an index out of range: estimate"},
      {"tensor dim", [](fb::PlanT &p) { p.inputs[0]->dims[1] = ~0u; }, "plan has an index out of range: input 0"},
      {"rank 9", [](fb::PlanT &p) { p.outputs[0]->dims.assign(9, 0); }, "plan has a tensor of rank above 8: output 0"},
      {"dtype", [](fb::PlanT &p) { p.inputs[0]->dtype = static_cast<fb::DType>(99); }, "plan has an unknown dtype: input 0"},
      {"dtype i4", [](fb::PlanT &p) { p.inputs[0]->dtype = fb::DType::I4; }, "plan has an unknown dtype: input 0"},
      {"same name", [](fb::PlanT &p) { p.inputs[1]->name = "x"; }, "plan has two tensors of one name: x"},
      {"empty name", [](fb::PlanT &p) { p.inputs[1]->name = ""; }, "plan has a bad name: input 1"},
      {"NUL in name", [](fb::PlanT &p) { p.inputs[1]->name = std::string("a\0b", 3); }, "plan has a bad name: input 1"},
      {"long name", [](fb::PlanT &p) { p.steps[1]->name = std::string(5000, 'n'); }, "plan has a bad name: step 1"},
      {"default", [](fb::PlanT &p) { p.inputs[1]->default_kind = "random"; }, "plan has an unknown default: input 1"},
      {"default without weight", [](fb::PlanT &p) { p.inputs[1]->default_kind = "weight"; }, "plan has a default without a weight: input 1"},
      {"default of nothing", [](fb::PlanT &p) { p.buffers[5]->tensor = 9; }, "plan has an index out of range: tensor of buffer 5"},
      {"default of a required input", [](fb::PlanT &p) { p.buffers[5]->tensor = 0; }, "plan has a weight that cannot be an input's default: buffer 5"},
      {"default of another size", [](fb::PlanT &p) { p.inputs[1]->default_kind = "weight", p.buffers[5]->tensor = 1; }, "plan has a weight that cannot be an input's default: buffer 5"},
      {"buffer size", [](fb::PlanT &p) { p.buffers[0]->bytes = 77; }, "plan has an index out of range: size of buffer 0"},
      {"buffer kind", [](fb::PlanT &p) { p.buffers[0]->kind = static_cast<fb::BufferKind>(9); }, "plan has an unknown buffer kind: buffer 0"},
      {"buffer tensor", [](fb::PlanT &p) { p.buffers[0]->tensor = 3; }, "plan has an index out of range: tensor of buffer 0"},
      {"negative tensor", [](fb::PlanT &p) { p.buffers[3]->tensor = -1; }, "plan has an index out of range: tensor of buffer 3"},
      {"tensor twice", [](fb::PlanT &p) { p.buffers[1]->tensor = 0; }, "plan has two buffers for one tensor: buffer 1"},
      {"weight offset", [](fb::PlanT &p) { p.buffers[5]->offset = 64; }, "plan has a weight outside of the weights section: buffer 5"},
      {"weight wraps", [](fb::PlanT &p) { p.buffers[5]->offset = UINT64_MAX - 63; }, "plan has a weight outside of the weights section: buffer 5"},
      {"weight misaligned", [&](fb::PlanT &p) { p.buffers[5]->offset = 4, p.buffers[5]->bytes = 13; }, "plan has a misaligned weight: buffer 5"},
      {"weight symbolic", [](fb::PlanT &p) { p.buffers[5]->bytes = 6; }, "plan has a weight of unknown size: buffer 5"},
      {"weight negative", [&](fb::PlanT &p) { code(p, 10, {0, -16}); }, "plan has a weight of unknown size: buffer 5"},
      {"lifetime reversed", [](fb::PlanT &p) { p.buffers[6]->first_step = 2; }, "plan has a bad lifetime: buffer 6"},
      {"lifetime beyond", [](fb::PlanT &p) { p.buffers[6]->last_step = 3; }, "plan has a bad lifetime: buffer 6"},
      {"dead buffer used", [](fb::PlanT &p) { p.buffers[6]->last_step = 0; }, "plan uses a buffer outside of its lifetime: step 1"},
      {"step buffer", [](fb::PlanT &p) { p.steps[0]->buffers[0] = 1000; }, "plan has an index out of range: buffer of step 0"},
      {"operand count", [](fb::PlanT &p) { p.steps[0]->operand_count = 4; }, "plan has more operands than buffers: step 0"},
      {"cycle", [](fb::PlanT &p) { p.steps[0]->buffers = {4, 5, 6}; }, "plan reads a buffer before it is written: step 0"},
      {"self-cycle", [](fb::PlanT &p) { p.steps[0]->buffers = {6, 5, 6}; }, "plan reads a buffer before it is written: step 0"},
      {"writes weight", [](fb::PlanT &p) { p.steps[0]->buffers = {0, 5, 5}; }, "plan writes to an input or weight: step 0"},
      {"output unwritten", [](fb::PlanT &p) { p.steps.pop_back(), p.buffers.pop_back(); }, "plan never writes an output: buffer 3"},
      {"output without buffer", [](fb::PlanT &p) { p.outputs.push_back(std::make_unique<fb::TensorT>(*p.outputs[0])), p.outputs.back()->name = "z"; }, "plan has an output without a buffer: output 2"},
      {"step flops", [](fb::PlanT &p) { p.steps[0]->flops = 99; }, "plan has an index out of range: estimate of step 0"},
      {"constraint", [](fb::PlanT &p) { p.constraints[0]->b = 99; }, "plan has an index out of range: constraint 0"},
      {"constraint kind", [](fb::PlanT &p) { p.constraints[0]->kind = static_cast<fb::ConstraintKind>(7); }, "plan has an unknown constraint: constraint 0"},
      {"state input", [](fb::PlanT &p) { p.states[0]->input = 3; }, "plan has an index out of range: state 0"},
      {"state axis", [](fb::PlanT &p) { p.states[0]->axis = 3; }, "plan has a state whose input and output differ: state 0"},
      {"state dtype", [](fb::PlanT &p) { p.states[0]->input = 1; }, "plan has a state whose input and output differ: state 0"},
      {"state twice", [](fb::PlanT &p) { p.states.push_back(std::make_unique<fb::StateT>(*p.states[0])); }, "plan has two states for one tensor: state 1"},
      {"one capacity", [](fb::PlanT &p) { p.states[0]->output_capacity_symbol = 3; }, "plan uses a capacity twice: state 0"},
      {"capacity is a size", [](fb::PlanT &p) { p.states[0]->output_capacity_symbol = 0; }, "plan has a shape that depends on a capacity: tensor"},
      {"no code", [](fb::PlanT &p) { p.code.clear(); }, "plan names no code"},
      {"code section", [](fb::PlanT &p) { p.code[0]->section = 0; }, "plan names a section that is not code"},
      {"code section index", [](fb::PlanT &p) { p.code[0]->section = 1u << 31; }, "plan names a section that is not code"},
      {"text size", [](fb::PlanT &p) { p.code[0]->text_bytes = uint64_t(1) << 60; }, "plan has a bad code size"}};
  ASSERT_EQ(refusal(hostilePlan([](fb::PlanT &) {})), "");
  for (auto &c : cases) {
    std::string message = refusal(hostilePlan(c.change));
    EXPECT_EQ(message.rfind(c.says, 0), 0u) << c.name << ": " << message;
  }
}

TEST(Hostile, CudaPlans) {
  using Kind = fb::CudaArgumentKind;
  EngineChanges both, only;
  both.cudaModule = only.cudaModule = testCudaModule(), only.cpu = false;
  const PlanCase cases[] = {
      {"launch of no step", [](fb::PlanT &p) { p.cuda->launches[3]->step = 3; }, "plan has an index out of range: CUDA launch 3"},
      {"launch of no kernel", [](fb::PlanT &p) { p.cuda->launches[3]->kernel = 3; }, "plan has an index out of range: CUDA launch 3"},
      {"disorder", [](fb::PlanT &p) { std::swap(p.cuda->launches[2], p.cuda->launches[3]); }, "plan has CUDA launches that do not follow the steps: launch 3"},
      {"first step left out", [](fb::PlanT &p) { p.cuda->launches.erase(p.cuda->launches.begin()); }, "plan has CUDA launches that do not follow the steps: launch 0"},
      {"a step left out", [](fb::PlanT &p) { p.cuda->launches.erase(p.cuda->launches.begin() + 1, p.cuda->launches.begin() + 3); }, "plan has CUDA launches that do not follow the steps: launch 1"},
      {"last step left out", [](fb::PlanT &p) { p.cuda->launches.pop_back(); }, "plan has a step without a CUDA launch: step 2"},
      {"no launch", [](fb::PlanT &p) { p.cuda->launches.clear(); }, "plan has a step without a CUDA launch: step 0"},
      {"flat grid", [](fb::PlanT &p) { p.cuda->launches[1]->grid.pop_back(); }, "plan has a CUDA grid without three sizes: launch 1"},
      {"grid", [](fb::PlanT &p) { p.cuda->launches[1]->grid[2] = 99; }, "plan has an index out of range: grid of CUDA launch 1"},
      {"buffer", [](fb::PlanT &p) { p.cuda->launches[1]->arguments[0] = {Kind::Buffer, 4}; }, "plan has an index out of range: argument of CUDA launch 1"},
      {"dim", [](fb::PlanT &p) { p.cuda->launches[1]->arguments[2] = {Kind::Dim, 99}; }, "plan has an index out of range: argument of CUDA launch 1"},
      {"fault", [](fb::PlanT &p) { p.cuda->launches[2]->arguments[2] = {Kind::Fault, 1}; }, "plan has an index out of range: argument of CUDA launch 2"},
      {"step", [](fb::PlanT &p) { p.cuda->launches[2]->arguments[3] = {Kind::Step, 7}; }, "plan has an index out of range: argument of CUDA launch 2"},
      {"kind", [](fb::PlanT &p) { p.cuda->launches[2]->arguments[3] = {static_cast<Kind>(9), 0}; }, "plan has an unknown kind of CUDA argument: launch 2"},
      {"a buffer as a check", [](fb::PlanT &p) { p.cuda->launches[1]->arguments[0] = {Kind::Check, 0}; }, "plan passes a buffer as what it is not: CUDA launch 1"},
      {"a buffer as anchors", [](fb::PlanT &p) { p.cuda->launches[1]->arguments[0] = {Kind::Anchors, 0}; }, "plan passes a buffer as what it is not: CUDA launch 1"},
      {"anchors of no buffer", [](fb::PlanT &p) { p.cuda->launches[1]->arguments[0] = {Kind::Anchors, 4}; }, "plan has an index out of range: argument of CUDA launch 1"},
      {"per-thread memory", [](fb::PlanT &p) { p.steps[2]->buffers = {0, 1, 4, 7, 3}, p.steps[2]->operand_count = 3, p.cuda->launches[3]->arguments[0] = {Kind::Buffer, 3}; }, "plan passes a buffer as what it is not: CUDA launch 3"},
      {"arguments", [](fb::PlanT &p) { p.cuda->launches[0]->arguments.assign(513, {Kind::Buffer, 0}); }, "plan passes too many arguments: CUDA launch 0"},
      {"kernel name", [](fb::PlanT &p) { p.cuda->kernels[1]->name = ""; }, "plan has a bad name: CUDA kernel 1"},
      {"no threads", [](fb::PlanT &p) { p.cuda->kernels[1]->threads = 0; }, "plan has a CUDA kernel of an impossible size: kernel 1"},
      {"half a warp", [](fb::PlanT &p) { p.cuda->kernels[1]->threads = 48; }, "plan has a CUDA kernel of an impossible size: kernel 1"},
      {"threads", [](fb::PlanT &p) { p.cuda->kernels[1]->threads = 2048; }, "plan has a CUDA kernel of an impossible size: kernel 1"},
      {"shared memory", [](fb::PlanT &p) { p.cuda->kernels[1]->shared_bytes = 1u << 20; }, "plan has a CUDA kernel of an impossible size: kernel 1"},
      {"precision", [](fb::PlanT &p) { p.cuda->precision = std::string("f\0", 2); }, "plan has a bad name: CUDA precision"},
      {"no image", [](fb::PlanT &p) { p.cuda->images.clear(); }, "plan names no CUDA image or too many of them"},
      {"architecture", [](fb::PlanT &p) { p.cuda->images[1]->arch = "sm_9x"; }, "plan has a bad CUDA architecture: image 1"},
      {"no number", [](fb::PlanT &p) { p.cuda->images[1]->arch = "compute_"; }, "plan has a bad CUDA architecture: image 1"},
      {"architecture twice", [](fb::PlanT &p) { p.cuda->images[1]->arch = "sm_80"; }, "plan has a CUDA architecture twice: image 1"},
      {"section of code", [](fb::PlanT &p) { p.cuda->images[1]->section = 2; }, "plan names a section that is not a CUDA module: image 1"},
      {"section index", [](fb::PlanT &p) { p.cuda->images[1]->section = 1u << 31; }, "plan names a section that is not a CUDA module: image 1"},
      {"parts", [](fb::PlanT &p) { p.cuda->images[0]->sizes.pop_back(); }, "plan has a CUDA image without one part per kernel: image 0"},
      {"misaligned", [](fb::PlanT &p) { p.cuda->images[0]->offsets[1] = 8; }, "plan has a CUDA kernel outside of its section: image 0"},
      {"no bytes", [](fb::PlanT &p) { p.cuda->images[0]->sizes[1] = 0; }, "plan has a CUDA kernel outside of its section: image 0"},
      {"beyond", [](fb::PlanT &p) { p.cuda->images[0]->sizes[2] = 65; }, "plan has a CUDA kernel outside of its section: image 0"},
      {"wraps", [](fb::PlanT &p) { p.cuda->images[0]->offsets[2] = UINT64_MAX - 63; }, "plan has a CUDA kernel outside of its section: image 0"},
      {"PTX without an end", [](fb::PlanT &p) { p.cuda->images[1]->sizes[2] = 7; }, "plan has a PTX text without an end: image 1"}};
  for (auto *changes : {&both, &only}) ASSERT_EQ(refusal(hostilePlan([](fb::PlanT &) {}, *changes)), "");
  for (auto &c : cases) {
    std::string message = refusal(hostilePlan(c.change, both));
    EXPECT_EQ(message.rfind(c.says, 0), 0u) << c.name << ": " << message;
  }
  // A check buffer is passed as a check, and as nothing else.
  auto asCheck = [](fb::PlanT &p, Kind kind) {
    auto anchors = std::make_unique<fb::TensorT>();
    anchors->name = "anchors", anchors->dtype = fb::DType::I32, anchors->dims = {0, 2}, anchors->optional = true, anchors->default_kind = "empty";
    p.inputs.push_back(std::move(anchors));
    p.checks = std::make_unique<fb::ChecksT>();
    p.checks->anchors = 3, p.checks->batch = 0, p.checks->tokens = 1, p.checks->past = 2, p.checks->window = 3;
    p.checks->items.push_back(std::make_unique<fb::CheckT>());
    p.checks->items[0]->heads = 3, p.checks->items[0]->precision = "f32";
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->kind = fb::BufferKind::Check, buffer->tensor = 0;
    p.buffers.push_back(std::move(buffer));
    p.steps[0]->buffers = {0, 8, 6};
    p.cuda->launches[0]->arguments[1] = {kind, 1};
  };
  EXPECT_EQ(refusal(hostilePlan([&](fb::PlanT &p) { asCheck(p, Kind::Check); }, both)), "");
  std::string message = refusal(hostilePlan([&](fb::PlanT &p) { asCheck(p, Kind::Buffer); }, both));
  EXPECT_EQ(message.rfind("plan passes a buffer as what it is not: CUDA launch 0", 0), 0u) << message;
  // A module under a hash that is no longer its own.
  std::string tampered = engineBytes(only);
  tampered[tampered.find("image 1")] ^= 1;
  EXPECT_EQ(refusal(tampered).rfind("hash mismatch: section cuda module was changed", 0), 0u) << refusal(tampered);
}

TEST(Hostile, PlanBytesAtRandomNeverCrashTheVerifier) {
  fb::PlanT plan = testPlan(2, 100);
  plan.cuda = testCuda(4);
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  uint64_t sections[5] = {0, 0, 100, 0, 0}, cudaSections[5] = {0, 0, 0, 0, 192};
  std::string module = testCudaModule();
  const uint8_t *cudaData[5] = {nullptr, nullptr, nullptr, nullptr, reinterpret_cast<const uint8_t *>(module.data())};
  PlanSurroundings around{16, sections, 5, cudaSections, cudaData};
  ASSERT_EQ(module.size(), cudaSections[4]);
  std::vector<uint64_t> storage(builder.GetSize() / 8 + 2);
  auto *bytes = reinterpret_cast<uint8_t *>(storage.data());
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    memcpy(bytes, builder.GetBufferPointer(), builder.GetSize());
    for (unsigned n = 1 + random() % 3; n; --n) bytes[random() % builder.GetSize()] = static_cast<uint8_t>(random());
    size_t size = round % 10 == 0 ? random() % (builder.GetSize() + 1) : builder.GetSize();
    accepted += static_cast<bool>(validatePlan(bytes, size, around));
  }
  EXPECT_LT(accepted, 20000);
}

TEST(Hostile, NumbersThatOverflowOnlyAtRunAreErrorsOfTheRun) {
  struct { const char *name; std::function<void(fb::PlanT &)> change; const char *says; } cases[] = {
      {"overflow", [](fb::PlanT &p) { p.dims[12]->code = {1, 0, 0, INT64_MAX, 3, 0, 0, 3, 3, 0}; }, "a size cannot be computed for these input shapes"},
      {"divides by a size of 0", [](fb::PlanT &p) { p.dims[12]->code = {0, 1, 1, 2, 6, 0}; }, "a size cannot be computed for these input shapes"},
      {"negative arena", [](fb::PlanT &p) { p.dims[11]->code = {0, -64}; }, "a buffer has a negative size"},
      {"huge arena", [](fb::PlanT &p) { p.dims[11]->code = {0, int64_t(1) << 50}; }, "out of memory: "},
      {"negative output", [](fb::PlanT &p) { p.dims[13]->code = {1, 0, 0, -1, 3, 0}; }, "a size is negative"},
      {"input buffer larger than the input", [](fb::PlanT &p) { p.buffers[0]->bytes = 12; }, "plan and tensor disagree about a size: 100 and 4 bytes"},
      {"output buffer larger than the output", [](fb::PlanT &p) { p.buffers[3]->bytes = 12; }, "plan and tensor disagree about a size: 100 and 4 bytes"}};
  for (auto &c : cases) {
    std::string bytes = hostilePlan(c.change);
    tare_error error;
    tare_engine_t *engine = tare_engine_open_memory(bytes.data(), bytes.size(), nullptr, &error);
    ASSERT_NE(engine, nullptr) << c.name << error.message;
    tare_context_options options{};
    options.struct_bytes = sizeof options, options.threads = 4;
    tare_context_t *context = tare_context_create(engine, &options, &error);
    ASSERT_NE(context, nullptr);
    float x = 1;
    int64_t shape[] = {1, 1};
    tare_tensor t{TARE_F32, 2, shape, &x, 4};
    ASSERT_EQ(tare_context_set_input(context, "x", &t, &error), TARE_OK) << error.message;
    EXPECT_NE(tare_context_run(context, &error), TARE_OK) << c.name;
    EXPECT_EQ(std::string(error.message).rfind(c.says, 0), 0u) << c.name << ": " << error.message;
    tare_context_destroy(context);
    tare_engine_close(engine);
  }
}
