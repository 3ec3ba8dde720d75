// Setting inputs and outputs, preparing for new shapes, running. Linked states are in ContextState.cpp, profile and metrics in Profile.cpp.
#include "runtime/Context.h"
#include "runtime/CpuDevice.h"
#include <algorithm>
#include <cstring>
#include <ctime>

namespace tare {
namespace {
constexpr int kMaxThreads = 256;

template <typename Tensors> int findTensor(const Tensors &tensors, const char *name) {
  for (uint32_t i = 0; i < tensors.size(); ++i)
    if (strcmp(tensors.Get(i)->name()->c_str(), name) == 0) return static_cast<int>(i);
  return -1;
}
template <typename Tensors> Error unknownTensor(const Tensors &tensors, const char *name, const char *text) {
  char list[300] = {0};
  size_t used = 0;
  for (uint32_t i = 0; i < tensors.size() && used + 40 < sizeof list; ++i) {
    int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", tensors.Get(i)->name()->c_str());
    used += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return Error::format(Status::Refused, text, "it has: %s", list).ofTensor(name);
}
double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
constexpr size_t kDeviceAlignment = 16; // the widest access of a CUDA kernel; a driver's memory has more
} // namespace

/// CPU code takes any address that is aligned to one element, CUDA text on the emulator what a GPU gives it.
bool Context::misaligned(const void *data, fb::DType type) const { return reinterpret_cast<uintptr_t>(data) % std::max<size_t>(dtypeBytes(type), isEmulated ? kDeviceAlignment : 1) != 0; }

Context::Context(std::shared_ptr<const Engine> engine, const tare_context_options &options)
    : shared(std::move(engine)), plan(shared->plan()), binding(plan), schedule(plan), layout(0), parallel(options.parallel), parallelUser(options.parallel_user) {
  bufferOfOutput.resize(plan.outputs()->size()), bufferOfInput.assign(plan.inputs()->size(), -1);
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    auto kind = plan.buffers()->Get(i)->kind();
    if (kind == fb::BufferKind::Output) bufferOfOutput[static_cast<size_t>(plan.buffers()->Get(i)->tensor())] = i;
    if (kind == fb::BufferKind::Input) bufferOfInput[static_cast<size_t>(plan.buffers()->Get(i)->tensor())] = static_cast<int32_t>(i);
    if (kind == fb::BufferKind::Arena || kind == fb::BufferKind::PerThread) arenaBuffers.push_back(i);
  }
  layout = Layout(arenaBuffers.size());
  shapes.resize(plan.inputs()->size());
  inputs.resize(plan.inputs()->size());
  outputs.resize(plan.outputs()->size());
  states.resize(plan.states()->size());
  links.resize(plan.states()->size());
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    auto &buffer = *plan.buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::Weight || buffer.tensor() < 0) continue;
    Input &input = inputs[static_cast<size_t>(buffer.tensor())];
    input.own = shared->weights() + buffer.offset(), input.ownBuffer = static_cast<int32_t>(i);
  }
  stateOfInput.assign(inputs.size(), -1);
  stateOfOutput.assign(outputs.size(), -1);
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    stateOfInput[plan.states()->Get(i)->input()] = static_cast<int32_t>(i);
    stateOfOutput[plan.states()->Get(i)->output()] = static_cast<int32_t>(i);
  }
  addresses.resize(plan.buffers()->size());
  skipped.resize(plan.steps()->size());
  touched.resize(plan.buffers()->size());
  isEmulated = strcmp(shared->level(), "cuda-emu") == 0;
  threads = options.threads ? options.threads : physicalCores();
  faults.resize(static_cast<size_t>(threads));
  if (options.profile) stamps.resize(plan.steps()->size() + 1);
}

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Engine> engine, const tare_context_options &options) {
  if (options.threads < 0 || options.threads > kMaxThreads)
    return Error::format(Status::Usage, "bad number of threads", "%d; 1 to %d, or 0 for the physical cores", options.threads, kMaxThreads);
  if (engine->gpu()) {
    CudaDevice &device = *engine->gpu();
    std::unique_ptr<Context> context(new Context(std::move(engine), options));
    auto run = CudaRun::create(device, context->plan, options.profile != 0);
    if (!run) return std::move(run.error());
    context->gpu = std::move(*run);
    context->onGpu.addresses.resize(context->plan.buffers()->size());
    context->onGpu.checks.resize(context->schedule.count());
    for (const auto *launch : *context->plan.cuda()->launches())
      for (const auto *argument : *launch->arguments()) context->onGpu.listed |= argument->kind() == fb::CudaArgumentKind::Check;
    return context;
  }
  auto entry = engine->entry();
  if (!entry) return std::move(entry.error());
  std::unique_ptr<Context> context(new Context(std::move(engine), options));
  context->entry = *entry;
  if (!context->parallel) TARE_TRY(context->pool.start(context->threads));
  return context;
}

Result<void> Context::setInput(const char *name, const tare_tensor *tensor) {
  int index = findTensor(*plan.inputs(), name);
  if (index < 0) return unknownTensor(*plan.inputs(), name, "the engine has no such input");
  auto &declared = *plan.inputs()->Get(static_cast<uint32_t>(index));
  Input &input = inputs[static_cast<size_t>(index)];
  Shape &shape = shapes[static_cast<size_t>(index)];
  if (shape.from == Shape::From::Linked) return Error(Error(Status::Usage, "input is linked to an output: the context feeds it").ofTensor(name));
  if (!tensor) {
    dirty = dirty || shape.from != Shape::From::Absent;
    shape.from = Shape::From::Absent;
    input.data = nullptr;
    return {};
  }
  if (static_cast<int>(tensor->dtype) != static_cast<int>(declared.dtype()))
    return Error(Error::format(Status::Refused, "input has a wrong dtype", "given %s, expected %s", dtypeName(static_cast<fb::DType>(tensor->dtype)), dtypeName(declared.dtype()))
                     .ofTensor(name));
  if (tensor->rank < 0 || tensor->rank > 8 || (tensor->rank > 0 && !tensor->shape)) return Error(Error(Status::Usage, "rank or shape pointer is wrong").ofTensor(name));
  Shape given;
  given.from = Shape::From::Caller, given.rank = tensor->rank;
  uint64_t bytes = dtypeBytes(declared.dtype());
  for (int i = 0; i < tensor->rank; ++i) {
    given.dims[i] = tensor->shape[i];
    if (given.dims[i] < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(given.dims[i]), &bytes))
      return Error(Error::format(Status::Refused, "input has an impossible shape", "dimension %d is %lld", i, static_cast<long long>(given.dims[i])).ofTensor(name));
  }
  TARE_TRY(Binding::checkAlone(plan, declared, given));
  if (tensor->bytes < bytes || (bytes && !tensor->data))
    return Error(Error::format(Status::Refused, "input buffer is too small", "%llu bytes, the shape needs %llu",
                               static_cast<unsigned long long>(tensor->data ? tensor->bytes : 0), static_cast<unsigned long long>(bytes))
                     .ofTensor(name));
  if (memcmp(&shape, &given, sizeof shape) != 0) shape = given, dirty = true;
  input.data = tensor->data;
  return {};
}

Result<void> Context::setOutput(const char *name, const tare_tensor *tensor) {
  int index = findTensor(*plan.outputs(), name);
  if (index < 0) return unknownTensor(*plan.outputs(), name, "the engine has no such output");
  auto &declared = *plan.outputs()->Get(static_cast<uint32_t>(index));
  Output &output = outputs[static_cast<size_t>(index)];
  if (isLinked(static_cast<size_t>(index))) return Error(Error(Status::Usage, "output is linked to an input: the context keeps it").ofTensor(name));
  dirty = true; // sizes are compared in prepareOutputs
  if (!tensor || !tensor->data) {
    output.data = nullptr, output.bytes = 0;
    return {};
  }
  if (static_cast<int>(tensor->dtype) != static_cast<int>(declared.dtype()))
    return Error(Error::format(Status::Refused, "output has another dtype", "given %s, the engine writes %s", dtypeName(static_cast<fb::DType>(tensor->dtype)),
                               dtypeName(declared.dtype()))
                     .ofTensor(name));
  output.data = tensor->data, output.bytes = tensor->bytes;
  return {};
}

Result<void> Context::requestOutputs(const char *const *names, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (findTensor(*plan.outputs(), names[i]) < 0) return unknownTensor(*plan.outputs(), names[i], "the engine has no such output");
  for (size_t o = 0; o < outputs.size(); ++o) {
    const char *own = plan.outputs()->Get(static_cast<uint32_t>(o))->name()->c_str();
    bool asked = count == 0 || std::any_of(names, names + count, [own](const char *name) { return strcmp(name, own) == 0; });
    if (asked != outputs[o].asked) dirty = true, ran = false; // asking for the same again costs nothing
    outputs[o].asked = asked;
  }
  return {};
}

bool Context::isLinked(size_t output) const {
  int32_t state = stateOfOutput[output];
  return state >= 0 && links[static_cast<size_t>(state)].linked;
}

bool Context::requested(size_t output) const { return outputs[output].asked || outputs[output].data || isLinked(output); }

/// Backwards from the requested outputs: a step runs when it writes one of them, or what a later running step touches.
void Context::prepareSteps() {
  for (uint32_t i = 0; i < touched.size(); ++i) {
    auto &buffer = *plan.buffers()->Get(i);
    touched[i] = buffer.kind() == fb::BufferKind::Output && requested(static_cast<size_t>(buffer.tensor()));
  }
  for (uint32_t s = plan.steps()->size(); s-- > 0;) {
    auto &step = *plan.steps()->Get(s);
    bool needed = step.operand_count() == step.buffers()->size(); // a step without results is there for what else it does
    for (uint32_t i = step.operand_count(); i < step.buffers()->size(); ++i) needed = needed || touched[step.buffers()->Get(i)];
    for (uint32_t index : *step.buffers()) // where requests have a past, the bits of a check are carried on whatever is asked for
      needed = needed || (plan.buffers()->Get(index)->kind() == fb::BufferKind::Check && (plan.states()->size() > 0 || schedule.tracing()));
    skipped[s] = !needed;
    for (uint32_t index : *step.buffers()) touched[index] = touched[index] || needed;
  }
  for (uint32_t i = 0; i < touched.size(); ++i) { // a step's scratch is none of its operands
    auto &buffer = *plan.buffers()->Get(i);
    if (buffer.kind() == fb::BufferKind::PerThread)
      for (uint32_t s = buffer.first_step(); s <= buffer.last_step(); ++s) touched[i] = touched[i] || !skipped[s];
  }
}

Result<void> Context::tensorBytes(const fb::Tensor &tensor, uint64_t &bytes) const {
  bytes = dtypeBytes(tensor.dtype());
  for (uint32_t dim : *tensor.dims())
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(binding.dim(dim)), &bytes) || bytes > INT64_MAX)
      return Error(Error(Status::Limit, "tensor is too large").ofTensor(tensor.name()->c_str()));
  return {};
}

Result<void> Context::prepareInputs() {
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    auto &tensor = *plan.inputs()->Get(i);
    uint64_t bytes;
    TARE_TRY(tensorBytes(tensor, bytes));
    if (shapes[i].from != Shape::From::Absent) continue;
    if (inputs[i].own) {
      inputs[i].address = inputs[i].own;
      continue;
    }
    TARE_TRY(inputs[i].staging.reserve(bytes, "the default of an input"));
    int64_t dims[8] = {0};
    for (uint32_t d = 0; d < tensor.dims()->size(); ++d) dims[d] = binding.dim(tensor.dims()->Get(d));
    fillDefault(tensor, dims, inputs[i].staging.data());
    inputs[i].address = inputs[i].staging.data();
  }
  return {};
}

Result<void> Context::prepareOutputs() {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    auto &tensor = *plan.outputs()->Get(i);
    Output &output = outputs[i];
    TARE_TRY(tensorBytes(tensor, output.needed));
    for (uint32_t d = 0; d < tensor.dims()->size(); ++d) output.dims[d] = binding.dim(tensor.dims()->Get(d));
    if (isLinked(i)) continue;
    output.address = nullptr;
    if (!touched[bufferOfOutput[i]]) continue;
    if (output.data && output.bytes < output.needed)
      return Error(Error::format(Status::Refused, "output buffer is too small", "%llu bytes, the result needs %llu", static_cast<unsigned long long>(output.bytes),
                                 static_cast<unsigned long long>(output.needed))
                       .ofTensor(tensor.name()->c_str()));
    if (gpu) continue; // prepareGpu
    bool copied = output.data && misaligned(output.data, tensor.dtype());
    if (copied) TARE_TRY(output.staging.reserve(output.needed, "a misaligned output"));
    if (!output.data) TARE_TRY(output.own.reserve(output.needed, "an output"));
    output.address = copied ? output.staging.data() : output.data ? output.data : output.own.data();
  }
  return {};
}

Result<void> Context::prepareArena() {
  for (size_t i = 0; i < arenaBuffers.size(); ++i) {
    auto &buffer = *plan.buffers()->Get(arenaBuffers[i]);
    int64_t bytes = binding.dim(buffer.bytes());
    if (bytes < 0) return Error::format(Status::Refused, "a buffer has a negative size for these input shapes", "%lld bytes", static_cast<long long>(bytes));
    auto size = static_cast<uint64_t>(bytes);
    if (buffer.kind() == fb::BufferKind::PerThread && gpu) size = 0; // kernels have none
    if (buffer.kind() == fb::BufferKind::PerThread && __builtin_mul_overflow(size, static_cast<uint64_t>(threads), &size)) return Error(Status::Limit, "scratch memory is too large");
    layout.items[i] = {touched[arenaBuffers[i]] ? size : 0, buffer.first_step(), buffer.last_step(), 0};
  }
  auto total = layout.place();
  if (!total) return std::move(total.error());
  arenaBytes = *total;
  if (gpu) return {}; // prepareGpu
  // When a later shape needs more (a growing KV cache does in every step), a quarter is added, so that allocations become rare.
  if (arena.data() && arenaBytes > arena.capacity()) {
    if (!arena.reserve(arenaBytes + arenaBytes / 4, "the arena")) TARE_TRY(arena.reserve(arenaBytes, "the arena"));
  } else {
    TARE_TRY(arena.reserve(arenaBytes, "the arena"));
  }
  return {};
}

Result<void> Context::prepare() {
  for (size_t i = 0; i < states.size(); ++i)
    if (links[i].linked) {
      auto &state = *plan.states()->Get(static_cast<uint32_t>(i));
      shapes[state.input()].dims[state.axis()] = states[i].length;
    }
  TARE_TRY(binding.bind(shapes.data(), links.data()));
  TARE_TRY(prepareStates());
  TARE_TRY(prepareInputs());
  prepareSteps();
  TARE_TRY(prepareOutputs());
  TARE_TRY(prepareArena());
  TARE_TRY(schedule.prepare(binding));
  // What the code will touch must lie inside of what was bound: the buffers' own sizes against the tensors'.
  for (auto *buffer : *plan.buffers()) {
    if (buffer->kind() != fb::BufferKind::Input && buffer->kind() != fb::BufferKind::Output) continue;
    bool input = buffer->kind() == fb::BufferKind::Input;
    auto tensorIndex = static_cast<uint32_t>(buffer->tensor());
    auto &tensor = input ? *plan.inputs()->Get(tensorIndex) : *plan.outputs()->Get(tensorIndex);
    int32_t state = input ? stateOfInput[tensorIndex] : stateOfOutput[tensorIndex];
    uint64_t bytes;
    TARE_TRY(tensorBytes(tensor, bytes));
    if (state >= 0 && links[static_cast<size_t>(state)].linked) bytes = stateCapacity(static_cast<size_t>(state));
    int64_t said = binding.dim(buffer->bytes());
    if (said < 0 || static_cast<uint64_t>(said) > bytes)
      return Error(Error::format(Status::Refused, "plan and tensor disagree about a size", "%lld and %llu bytes", static_cast<long long>(said), static_cast<unsigned long long>(bytes))
                       .ofTensor(tensor.name()->c_str()));
  }
  if (gpu) TARE_TRY(prepareGpu());
  dirty = false;
  return {};
}

/// Addresses change without new shapes too (set_input with another pointer), so the table is filled before every run.
void Context::fillBuffers() {
  size_t inArena = 0;
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    auto &buffer = *plan.buffers()->Get(i);
    switch (buffer.kind()) {
    case fb::BufferKind::Input: addresses[i] = const_cast<void *>(inputs[static_cast<size_t>(buffer.tensor())].address); break;
    case fb::BufferKind::Output: addresses[i] = outputs[static_cast<size_t>(buffer.tensor())].address; break;
    case fb::BufferKind::Check: addresses[i] = schedule.address(static_cast<size_t>(buffer.tensor())); break;
    case fb::BufferKind::Weight: addresses[i] = const_cast<uint8_t *>(shared->weights() + buffer.offset()); break;
    default: addresses[i] = static_cast<char *>(arena.data()) + layout.items[inArena++].offset;
    }
    // The address of nothing is still an address.
    if (!addresses[i]) addresses[i] = arena.data();
  }
}

int64_t Context::barrierCallback(void *context, int64_t) {
  auto &self = *static_cast<Context *>(context);
  return self.barrier.arrive([&self] {
    bool stop = self.cancelled.load(std::memory_order_relaxed);
    for (int64_t fault : self.faults) stop = stop || fault != 0;
    return stop;
  });
}

void Context::stampCallback(void *context, int64_t step) {
  auto &self = *static_cast<Context *>(context);
  if (step < 0 || static_cast<size_t>(step) >= self.stamps.size()) return;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  self.stamps[static_cast<size_t>(step)] = t.tv_sec * 1000000000 + t.tv_nsec;
}

void Context::threadBody(void *context, int thread) {
  auto &self = *static_cast<Context *>(context);
  if (self.entry(&self.arguments, thread) != 0) self.stopped.store(true, std::memory_order_relaxed);
}

/// Callers' inputs that are misaligned are copied; anchors and mask become the rows of the fidelity checks.
Result<void> Context::readInputs() {
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (shapes[i].from != Shape::From::Caller) continue;
    auto type = plan.inputs()->Get(i)->dtype();
    inputs[i].address = inputs[i].data;
    if (!misaligned(inputs[i].data, type)) continue;
    uint64_t bytes;
    TARE_TRY(tensorBytes(*plan.inputs()->Get(i), bytes));
    TARE_TRY(inputs[i].staging.reserve(bytes, "a misaligned input"));
    memcpy(inputs[i].staging.data(), inputs[i].data, bytes);
    inputs[i].address = inputs[i].staging.data();
  }
  return beginChecks();
}

/// A kernel's word: 1 + step.
Error Context::faultError(int64_t fault) const {
  auto step = static_cast<uint64_t>((fault < 0 ? -fault : fault) - 1);
  const char *name = step < plan.steps()->size() ? plan.steps()->Get(static_cast<uint32_t>(step))->name()->c_str() : "?";
  if (fault < 0) // code_abi.h: the emulator found a bug in a kernel
    return Error(Status::Internal, "a CUDA kernel did something wrong; the emulator's report is on standard error").inStep(name);
  return Error::format(Status::Refused, "index out of range", "a value of an input is not a legal index (an id beyond the vocabulary or the positions)").inStep(name);
}

Result<void> Context::execute() {
  TARE_TRY(readInputs());
  fillBuffers();
  std::fill(faults.begin(), faults.end(), 0);
  std::fill(stamps.begin(), stamps.end(), 0);
  stopped.store(false, std::memory_order_relaxed);
  barrier.prepare(threads, pool.spins());
  arguments = {addresses.data(), binding.dims(), threads, this, barrierCallback, this, stamps.empty() ? nullptr : stampCallback, faults.data(), skipped.data()};
  parallel ? parallel(parallelUser, threads, threadBody, this) : pool.run(threadBody, this);

  for (int64_t fault : faults)
    if (fault != 0) return faultError(fault);
  if (cancelled.load(std::memory_order_relaxed) && stopped.load(std::memory_order_relaxed)) {
    cancelled.store(false, std::memory_order_relaxed);
    ++cancellations;
    return Error(Status::Cancelled, "the run was cancelled");
  }
  if (stopped.load(std::memory_order_relaxed)) return Error(Status::Internal, "the code stopped without a reason");
  for (Output &output : outputs)
    if (output.data && output.address == output.staging.data()) memcpy(output.data, output.address, output.needed);
  return {};
}

Result<void> Context::run() {
  ran = false;
  if (cancelled.exchange(false, std::memory_order_relaxed)) {
    ++cancellations;
    return Error(Status::Cancelled, "the run was cancelled before it began");
  }
  double before = now();
  Result<void> result = dirty ? prepare() : Result<void>();
  if (result) result = gpu ? executeOnGpu() : execute();
  if (!result) {
    ++failures;
    return result;
  }
  lastSeconds = now() - before;
  seconds += lastSeconds;
  flopsDone += static_cast<double>(binding.dim(plan.flops()));
  ++runs;
  ran = true;
  advanceStates();
  schedule.commit();
  checkTotals.dense += schedule.counts().dense, checkTotals.sparse += schedule.counts().sparse, checkTotals.hits += schedule.counts().hits;
  return {};
}

Result<void> Context::getOutput(const char *name, tare_tensor &tensor) {
  int index = findTensor(*plan.outputs(), name);
  if (index < 0) return unknownTensor(*plan.outputs(), name, "the engine has no such output");
  auto &declared = *plan.outputs()->Get(static_cast<uint32_t>(index));
  Output &output = outputs[static_cast<size_t>(index)];
  if (isLinked(static_cast<size_t>(index))) return Error(Error(Status::Usage, "output is linked: the context keeps it").ofTensor(name));
  if (!requested(static_cast<size_t>(index))) return Error(Error(Status::Usage, "this output was not asked for, so it was not computed").ofTensor(name));
  if (!ran) return Error(Error(Status::Usage, "there is no result yet: the last run did not succeed, or there was none").ofTensor(name));
  tensor = {static_cast<tare_dtype>(declared.dtype()), static_cast<int32_t>(declared.dims()->size()), output.dims, output.data ? output.data : output.address, output.needed};
  return {};
}

} // namespace tare
