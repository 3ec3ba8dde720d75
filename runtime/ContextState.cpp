// Linked states (spec 11): an input and an output that share one block with room for `capacity` entries along an axis. The code appends in place when both
// addresses are equal; the runtime only keeps the length.
#include "runtime/Context.h"
#include <cstring>

namespace tare {

Result<void> Context::linkState(const char *input, const char *output, int64_t capacity) {
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    auto &state = *plan.states()->Get(i);
    if (strcmp(plan.inputs()->Get(state.input())->name()->c_str(), input) != 0 || strcmp(plan.outputs()->Get(state.output())->name()->c_str(), output) != 0) continue;
    if (capacity < 0) return Error(Error::format(Status::Usage, "capacity is negative", "%lld", static_cast<long long>(capacity)).ofTensor(input));
    states[i] = State{};
    if (gpu) gpu->releaseState(i);
    states[i].link = links[i] = {capacity > 0, capacity};
    shapes[state.input()] = Shape{};
    if (capacity > 0) shapes[state.input()].from = Shape::From::Linked;
    shapes[state.input()].rank = static_cast<int32_t>(plan.inputs()->Get(state.input())->dims()->size());
    inputs[state.input()].data = nullptr;
    outputs[state.output()].data = nullptr;
    schedule.reset();
    dirty = true, ran = false;
    return {};
  }
  return Error(Error::format(Status::Refused, "the engine cannot link this input to this output", "'%s' must be concat('%s', new entries), of %u such pairs", output, input,
                             plan.states()->size())
                   .ofTensor(input));
}

Result<void> Context::prepareStates() {
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    if (!links[i].linked) continue;
    auto &described = *plan.states()->Get(i);
    auto &input = *plan.inputs()->Get(described.input()), &output = *plan.outputs()->Get(described.output());
    State &state = states[i];
    const char *name = input.name()->c_str();
    uint32_t axis = described.axis();
    int64_t length = binding.dim(output.dims()->Get(axis));
    if (binding.dim(input.dims()->Get(axis)) != state.length)
      return Error(Error::format(Status::Refused, "linked states have different lengths", "%lld entries here, %lld expected", static_cast<long long>(state.length),
                                 static_cast<long long>(binding.dim(input.dims()->Get(axis))))
                       .ofTensor(name));
    if (length > links[i].capacity)
      return Error(Error::format(Status::Limit, "state would grow past its capacity", "%lld entries, capacity %lld", static_cast<long long>(length),
                                 static_cast<long long>(links[i].capacity))
                       .ofTensor(name));
    int64_t dims[8] = {0};
    uint64_t bytes = dtypeBytes(input.dtype());
    for (uint32_t d = 0; d < input.dims()->size(); ++d) {
      dims[d] = d == axis ? links[i].capacity : binding.dim(input.dims()->Get(d));
      if (dims[d] < 0 || (d != axis && dims[d] != binding.dim(output.dims()->Get(d))))
        return Error(Error(Status::Refused, "state's input and output have different shapes").ofTensor(name));
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dims[d]), &bytes) || bytes > INT64_MAX) return Error(Error(Status::Limit, "state is too large").ofTensor(name));
    }
    if (memcmp(dims, state.dims, sizeof dims) != 0) {
      if (state.length > 0)
        return Error(Error(Status::Refused, "input shapes changed while a state is linked; reset the context first").ofTensor(name));
      TARE_TRY(gpu ? gpu->reserveState(i, bytes) : state.block.reserve(bytes, "a linked state"));
      memcpy(state.dims, dims, sizeof dims);
    }
    inputs[described.input()].address = outputs[described.output()].address = state.block.data();
  }
  return {};
}

/// Anchors and mask are read anew for every run: their values may change without a new shape.
Result<void> Context::beginChecks() {
  if (schedule.empty()) return {};
  const fb::Checks &checks = *plan.checks();
  bool isGiven = shapes[checks.anchors()].from == Shape::From::Caller;
  const void *mask = nullptr;
  int64_t columns = 0;
  if (checks.mask() >= 0 && shapes[static_cast<uint32_t>(checks.mask())].from == Shape::From::Caller) {
    mask = inputs[static_cast<uint32_t>(checks.mask())].address;
    columns = binding.dim(plan.inputs()->Get(static_cast<uint32_t>(checks.mask()))->dims()->Get(1));
  }
  static constexpr int32_t none = 0; // no anchor at all still is a given list
  auto *anchors = static_cast<const int32_t *>(inputs[checks.anchors()].address);
  return schedule.begin(isGiven ? anchors ? anchors : &none : nullptr, mask, columns);
}

void Context::advanceStates() {
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    if (!links[i].linked) continue;
    auto &state = *plan.states()->Get(i);
    states[i].length = binding.dim(plan.outputs()->Get(state.output())->dims()->Get(state.axis()));
    dirty = true; // the next run sees a longer past
  }
}

void Context::reset() {
  for (State &state : states) state.length = 0;
  schedule.reset();
  cancelled.store(false, std::memory_order_relaxed);
  dirty = true, ran = false;
}

} // namespace tare
