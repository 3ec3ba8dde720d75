// A context on a GPU (CudaRun). The exchange is one block on both sides, so a run has one copy each way:
//   inputs | rows or anchors of the fidelity checks | carried bits | last bits | fault word | outputs
//   |<------------------ to the device ------------------------------->|
//                                                       |<--------- back --------->|
// Linked states and scratch memory stay on the device; outputs that have no buffer of the caller's are read in the pinned side.
#include "runtime/Context.h"
#include <cstring>

namespace tare {
namespace {
constexpr uint64_t kAlignment = 256;

/// Lays out the exchange; sizes that overflow stick.
class Places {
public:
  uint64_t add(uint64_t bytes) {
    uint64_t at = end;
    overflows = overflows || __builtin_add_overflow(end, bytes, &end) || __builtin_add_overflow(end, kAlignment - 1, &end) || end > INT64_MAX;
    end = end / kAlignment * kAlignment;
    return at;
  }
  uint64_t end = 0;
  bool overflows = false;
};
} // namespace

bool Context::isWeight(size_t input) const { return shapes[input].from == Shape::From::Absent && inputs[input].ownBuffer >= 0; }
bool Context::isSent(size_t input) const {
  int32_t buffer = bufferOfInput[input];
  return buffer >= 0 && touched[static_cast<size_t>(buffer)] && shapes[input].from != Shape::From::Linked && !isWeight(input);
}
bool Context::isFetched(size_t output) const { return touched[bufferOfOutput[output]] && !isLinked(output); }

/// Memory for the shapes that were bound, and the addresses that follow from it.
Result<void> Context::prepareGpu() {
  Places places;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    uint64_t bytes = 0;
    if (isSent(i)) TARE_TRY(tensorBytes(*plan.inputs()->Get(i), bytes));
    inputs[i].place = places.add(bytes);
  }
  uint64_t words = schedule.count() * static_cast<uint64_t>(schedule.elements()) * 4;
  onGpu.rows = places.add(onGpu.listed ? static_cast<uint64_t>(schedule.mostRows()) * 8 : 0);
  onGpu.anchors = places.add(static_cast<uint64_t>(schedule.elements()) * static_cast<uint64_t>(schedule.anchorsOfElement()) * 4);
  onGpu.first = places.add(schedule.count() ? static_cast<uint64_t>(schedule.elements()) * 8 : 0);
  onGpu.carried = places.add(words);
  CudaRun::Exchange exchange;
  exchange.downBegin = onGpu.last = places.add(words);
  onGpu.fault = places.add(8);
  exchange.upEnd = places.end;
  for (uint32_t i = 0; i < outputs.size(); ++i) outputs[i].place = places.add(isFetched(i) ? outputs[i].needed : 0);
  exchange.end = places.end;
  if (places.overflows) return Error(Status::Limit, "inputs and outputs are too large");
  TARE_TRY(gpu->reserve(arenaBytes, exchange));
  fillGpuBuffers();
  return {};
}

/// The address of every buffer that a kernel can get; unlike a CPU's they do not depend on the callers' pointers.
void Context::fillGpuBuffers() {
  size_t inArena = 0;
  for (uint32_t i = 0; i < plan.buffers()->size(); ++i) {
    auto &buffer = *plan.buffers()->Get(i);
    auto tensor = static_cast<size_t>(buffer.tensor());
    driver::Address &address = onGpu.addresses[i];
    switch (buffer.kind()) {
    case fb::BufferKind::Input:
      if (shapes[tensor].from == Shape::From::Linked) address = gpu->state(static_cast<size_t>(stateOfInput[tensor]));
      else if (isWeight(tensor)) address = shared->gpu()->weight(static_cast<uint32_t>(inputs[tensor].ownBuffer));
      else address = gpu->onDevice(inputs[tensor].place);
      break;
    case fb::BufferKind::Output: address = isLinked(tensor) ? gpu->state(static_cast<size_t>(stateOfOutput[tensor])) : gpu->onDevice(outputs[tensor].place); break;
    case fb::BufferKind::Weight: address = shared->gpu()->weight(i); break;
    case fb::BufferKind::Arena: address = gpu->arena() + layout.items[inArena++].offset; break;
    case fb::BufferKind::PerThread: ++inArena; break;
    case fb::BufferKind::Check: break; // onGpu.checks
    }
  }
  auto words = static_cast<uint64_t>(schedule.elements());
  for (size_t i = 0; i < onGpu.checks.size(); ++i)
    onGpu.checks[i] = {reinterpret_cast<const int64_t *>(gpu->onDevice(onGpu.rows)), 0, 0, reinterpret_cast<const uint32_t *>(gpu->onDevice(onGpu.carried + 4 * i * words)),
                       reinterpret_cast<uint32_t *>(gpu->onDevice(onGpu.last + 4 * i * words)), nullptr, reinterpret_cast<const int32_t *>(gpu->onDevice(onGpu.anchors)), 0,
                       reinterpret_cast<const int64_t *>(gpu->onDevice(onGpu.first)), 0};
}

Result<void> Context::executeOnGpu() {
  TARE_TRY(readInputs());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (!isSent(i)) continue;
    uint64_t bytes;
    TARE_TRY(tensorBytes(*plan.inputs()->Get(i), bytes));
    if (bytes) memcpy(gpu->onHost(inputs[i].place), inputs[i].address, bytes);
  }
  auto words = static_cast<size_t>(schedule.elements());
  for (size_t i = 0; i < onGpu.checks.size(); ++i) {
    const CheckRows &described = schedule.check(i);
    if (i == 0 && described.count >= 0) { // the same for all
      if (onGpu.listed && described.count) memcpy(gpu->onHost(onGpu.rows), described.rows, static_cast<size_t>(described.count) * 8);
      if (described.anchorCount > 0 && words) memcpy(gpu->onHost(onGpu.anchors), described.anchors, words * static_cast<size_t>(described.anchorCount) * 4);
      if (words) memcpy(gpu->onHost(onGpu.first), described.first, words * 8);
    }
    onGpu.checks[i].count = described.count, onGpu.checks[i].tokens = described.tokens, onGpu.checks[i].anchorCount = described.anchorCount, onGpu.checks[i].past = described.past;
    if (!words) continue;
    memcpy(gpu->onHost(onGpu.carried + 4 * i * words), described.carried, 4 * words);
    memset(gpu->onHost(onGpu.last + 4 * i * words), 0, 4 * words);
  }
  memset(gpu->onHost(onGpu.fault), 0, 8);

  CudaRun::Given given{onGpu.addresses.data(), binding, onGpu.checks.data(), gpu->onDevice(onGpu.fault), skipped.data(), cancelled};
  auto end = gpu->run(given, stamps);
  if (!end) return std::move(end.error());
  // A GPU finishes what it was given: a cancel that came while it worked ends the run, too, only later.
  if (cancelled.exchange(false, std::memory_order_relaxed) || *end == CudaRun::End::Cancelled) {
    ++cancellations;
    return Error(Status::Cancelled, "the run was cancelled");
  }
  int64_t fault;
  memcpy(&fault, gpu->onHost(onGpu.fault), sizeof fault);
  if (fault != 0) return faultError(fault);
  for (size_t i = 0; words && i < onGpu.checks.size(); ++i) memcpy(schedule.check(i).last, gpu->onHost(onGpu.last + 4 * i * words), 4 * words);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (!isFetched(i)) continue;
    if (!outputs[i].data) outputs[i].address = gpu->onHost(outputs[i].place);
    else if (outputs[i].needed) memcpy(outputs[i].data, gpu->onHost(outputs[i].place), outputs[i].needed);
  }
  return {};
}

} // namespace tare
