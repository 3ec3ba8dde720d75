// Plain launches for a first run; the second run with the same copies and the same kernels in the same order is captured as a graph; later ones launch it. What
// differs from run to run (counts of listed rows, sizes, addresses) is a parameter or the grid of a kernel: its node is set anew before the launch, so a graph
// never holds an old value. A driver that refuses a graph is asked once: from then on launches are plain.
#include "runtime/CudaRun.h"
#include <algorithm>
#include <cstring>
#include <ctime>

namespace tare {
namespace {
uint32_t wordsOf(fb::CudaArgumentKind kind) {
  return kind == fb::CudaArgumentKind::Check ? format::kCheckArgumentBytes / 8 : kind == fb::CudaArgumentKind::Anchors ? format::kAnchorsArgumentBytes / 8 : 1;
}

/// kernels/cuda/check_window.cuh CheckRun with bare pointers.
void putAnchors(uint64_t *word, const CheckRows &check) {
  const uint64_t words[] = {reinterpret_cast<uintptr_t>(check.anchors), static_cast<uint64_t>(check.anchorCount), reinterpret_cast<uintptr_t>(check.first), static_cast<uint64_t>(check.tokens),
                            static_cast<uint64_t>(check.past), reinterpret_cast<uintptr_t>(check.carried), reinterpret_cast<uintptr_t>(check.last)};
  static_assert(sizeof words == format::kAnchorsArgumentBytes);
  memcpy(word, words, sizeof words);
}
} // namespace

driver::Code CudaBlock::allocate(const driver::Driver &api, size_t bytes, bool isPinned) {
  void *host = nullptr;
  driver::Code code = isPinned ? api.hostAlloc(&host, bytes, 0) : api.memoryAlloc(&address, bytes);
  if (code != 0) address = 0, host = nullptr;
  pinned = static_cast<char *>(host), size = code == 0 ? bytes : 0;
  return code;
}

Result<void> CudaBlock::reserve(const CudaDevice &owner, size_t bytes, const char *what, bool isPinned) {
  if (bytes <= size) return {};
  bool grows = size > 0;
  release(owner);
  if (grows && allocate(owner.api(), bytes + bytes / 4, isPinned) == 0) return {};
  driver::Code code = allocate(owner.api(), bytes, isPinned);
  if (code == 0) return {};
  if (code != driver::kOutOfMemory) return owner.api().error(code, isPinned ? "no pinned memory" : "no device memory");
  size_t free, total;
  owner.memory(free, total);
  return Error::format(Status::Limit, isPinned ? "out of pinned host memory" : "out of device memory", "%s: %llu bytes; %llu of the GPU's %llu MiB are free; use smaller inputs or fewer contexts", what,
                       static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(free >> 20), static_cast<unsigned long long>(total >> 20));
}

void CudaBlock::release(const CudaDevice &owner) {
  if (address) (void)owner.api().memoryFree(address);
  if (pinned) (void)owner.api().hostFree(pinned);
  address = 0, pinned = nullptr, size = 0;
}

CudaRun::CudaRun(CudaDevice &device, const fb::Plan &plan) : device(device), api(device.api()), plan(plan), cuda(*plan.cuda()), states(plan.states()->size()) {
  uint32_t words = 0, count = cuda.launches()->size();
  for (const auto *launch : *cuda.launches()) {
    firstWord.push_back(words), firstPointer.push_back(static_cast<uint32_t>(pointers.size()));
    for (const auto *argument : *launch->arguments()) {
      pointers.push_back(reinterpret_cast<void *>(static_cast<uintptr_t>(words))); // its place; an address below
      words += wordsOf(argument->kind());
    }
  }
  for (Parameters *p : {&now, &before}) p->words.resize(words), p->grids.resize(3 * size_t(count)), p->launched.resize(count);
  for (void *&p : pointers) p = now.words.data() + reinterpret_cast<uintptr_t>(p);
  nodes.resize(count);
}

Result<std::unique_ptr<CudaRun>> CudaRun::create(CudaDevice &device, const fb::Plan &plan, bool profile) {
  TARE_TRY(device.load());
  std::unique_ptr<CudaRun> run(new CudaRun(device, plan));
  CudaCurrent current(run->api, device.context());
  TARE_TRY(current.good());
  TARE_TRY(run->api.check(run->api.streamCreate(&run->stream, driver::kNonBlocking), "no CUDA stream"));
  for (size_t i = 0; profile && i <= plan.steps()->size(); ++i) {
    driver::Event event = nullptr;
    TARE_TRY(run->api.check(run->api.eventCreate(&event, 0), "no CUDA event"));
    run->events.push_back(event);
  }
  return run;
}

CudaRun::~CudaRun() {
  CudaCurrent current(api, device.context(), true);
  if (!current.good()) return;
  dropGraph();
  for (driver::Event event : events) (void)api.eventDestroy(event);
  if (stream) (void)api.streamDestroy(stream);
  for (CudaBlock *block : {&scratch, &deviceSide, &hostSide}) block->release(device);
  for (CudaBlock &block : states) block.release(device);
}

Result<void> CudaRun::reserve(uint64_t arenaBytes, const Exchange &sizes) {
  CudaCurrent current(api, device.context());
  TARE_TRY(current.good());
  exchange = sizes;
  TARE_TRY(hostSide.reserve(device, sizes.end, "inputs and outputs", true));
  TARE_TRY(deviceSide.reserve(device, sizes.end, "inputs and outputs"));
  return scratch.reserve(device, arenaBytes, "the arena");
}

Result<void> CudaRun::reserveState(size_t state, uint64_t bytes) {
  CudaCurrent current(api, device.context());
  TARE_TRY(current.good());
  return states[state].reserve(device, bytes, "a linked state");
}

void CudaRun::releaseState(size_t state) {
  if (states[state].capacity() == 0) return;
  CudaCurrent current(api, device.context(), true);
  if (current.good()) states[state].release(device);
}

Result<void> CudaRun::fillGrid(uint32_t number, const Binding &binding) {
  const auto &launch = *cuda.launches()->Get(number);
  for (uint32_t i = 0; i < 3; ++i) {
    int64_t blocks = binding.dim(launch.grid()->Get(i));
    if (blocks > (i == 0 ? INT32_MAX : 65535))
      return Error(Error::format(Status::Limit, "these input shapes need too many blocks of a CUDA kernel", "%lld along axis %u; use smaller inputs", static_cast<long long>(blocks), i))
          .inStep(plan.steps()->Get(launch.step())->name()->c_str());
    now.grids[3 * size_t(number) + i] = blocks > 0 ? static_cast<unsigned>(blocks) : 0;
  }
  return {};
}

/// Every value that a launch depends on, before anything is launched.
Result<void> CudaRun::fill(const Given &given) {
  for (uint32_t number = 0; number < cuda.launches()->size(); ++number) {
    const auto &launch = *cuda.launches()->Get(number);
    TARE_TRY(fillGrid(number, given.binding));
    const unsigned *grid = &now.grids[3 * size_t(number)];
    now.launched[number] = !given.skipped[launch.step()] && grid[0] && grid[1] && grid[2];
    const auto &buffers = *plan.steps()->Get(launch.step())->buffers();
    for (uint32_t a = 0; a < launch.arguments()->size(); ++a) {
      const auto &argument = *launch.arguments()->Get(a);
      auto *word = static_cast<uint64_t *>(pointers[firstPointer[number] + a]);
      switch (argument.kind()) {
      case fb::CudaArgumentKind::Buffer: *word = given.buffers[buffers.Get(argument.value())]; break;
      case fb::CudaArgumentKind::Dim: *word = static_cast<uint64_t>(given.binding.dim(argument.value())); break;
      case fb::CudaArgumentKind::Check:
      case fb::CudaArgumentKind::Anchors: {
        static_assert(offsetof(CheckRows, all) == format::kCheckArgumentBytes, "kernels/cuda/check_window.cuh ListedRun with bare pointers");
        const CheckRows &check = given.checks[static_cast<size_t>(plan.buffers()->Get(buffers.Get(argument.value()))->tensor())];
        if (argument.kind() == fb::CudaArgumentKind::Check) memcpy(word, &check, format::kCheckArgumentBytes);
        else putAnchors(word, check);
        break;
      }
      case fb::CudaArgumentKind::Fault: *word = given.fault; break;
      case fb::CudaArgumentKind::Step: *word = launch.step(); break;
      }
    }
  }
  return {};
}

bool CudaRun::repeats() const {
  return hasBefore && exchangeBefore.upEnd == exchange.upEnd && exchangeBefore.downBegin == exchange.downBegin && exchangeBefore.end == exchange.end && deviceBefore == deviceSide.device() &&
         hostBefore == hostSide.host() && now.launched == before.launched;
}

void CudaRun::remember() {
  hasBefore = true, exchangeBefore = exchange, deviceBefore = deviceSide.device(), hostBefore = hostSide.host();
  before.words = now.words, before.grids = now.grids, before.launched = now.launched; // of equal sizes: nothing is allocated
}

Result<void> CudaRun::launchOne(uint32_t number) {
  const auto &launch = *cuda.launches()->Get(number);
  const auto &kernel = *cuda.kernels()->Get(launch.kernel());
  const unsigned *grid = &now.grids[3 * size_t(number)];
  driver::Code code = api.launch(device.function(launch.kernel()), grid[0], grid[1], grid[2], kernel.threads(), 1, 1, kernel.shared_bytes(), stream, pointers.data() + firstPointer[number], nullptr);
  if (code == 0) return {};
  return api.error(code, "a CUDA kernel cannot be launched").inStep(plan.steps()->Get(launch.step())->name()->c_str());
}

/// The graph node that a captured launch became: what the stream's next work would wait for.
Result<void> CudaRun::noteNode(uint32_t number) {
  int status = 0;
  size_t count = 0;
  const driver::GraphNode *last = nullptr;
  TARE_TRY(api.check(api.captureInfo(stream, &status, nullptr, nullptr, &last, &count), "the CUDA graph does not show its nodes"));
  if (status != driver::kCaptureActive || count != 1) return api.error(driver::kCaptureInvalidated, "a launch is not one node of the CUDA graph");
  nodes[number] = last[0];
  return {};
}

Result<CudaRun::End> CudaRun::launchAll(const Given &given, bool capturing) {
  if (exchange.upEnd) TARE_TRY(api.check(api.copyToDeviceAsync(deviceSide.device(), hostSide.host(), exchange.upEnd, stream), "the inputs do not reach the GPU"));
  uint32_t stamped = UINT32_MAX;
  for (uint32_t number = 0; number < now.launched.size(); ++number) {
    if (!now.launched[number]) continue;
    if (!capturing && given.cancelled.load(std::memory_order_relaxed)) return End::Cancelled;
    uint32_t step = cuda.launches()->Get(number)->step();
    if (!events.empty() && step != stamped) TARE_TRY(api.check(api.eventRecord(events[step], stream), "a step cannot be timed"));
    stamped = step;
    TARE_TRY(launchOne(number));
    if (capturing) TARE_TRY(noteNode(number));
  }
  if (!events.empty()) TARE_TRY(api.check(api.eventRecord(events.back(), stream), "a step cannot be timed"));
  uint64_t bytes = exchange.end - exchange.downBegin;
  if (bytes)
    TARE_TRY(api.check(api.copyToHostAsync(hostSide.host() + exchange.downBegin, deviceSide.device() + exchange.downBegin, bytes, stream), "the results do not come back from the GPU"));
  return End::Done;
}

/// Other threads may call the driver meanwhile; this thread calls nothing that a capture forbids.
Result<void> CudaRun::capture(const Given &given) {
  TARE_TRY(api.check(api.captureBegin(stream, driver::kCaptureThreadLocal), "a CUDA graph cannot be captured"));
  auto launched = launchAll(given, true);
  driver::Code code = api.captureEnd(stream, &graph);
  if (code != 0) graph = nullptr;
  if (!launched) return std::move(launched.error());
  TARE_TRY(api.check(code, "a CUDA graph cannot be captured"));
  if (driver::Code made = api.graphInstantiate(&exec, graph, 0)) {
    exec = nullptr;
    return api.error(made, "a CUDA graph cannot be made");
  }
  return {};
}

/// Nodes whose parameters or grid are not those of the run before.
Result<void> CudaRun::updateGraph() {
  for (uint32_t number = 0; number < now.launched.size(); ++number) {
    if (!now.launched[number]) continue;
    size_t first = firstWord[number], end = number + 1 < firstWord.size() ? firstWord[number + 1] : now.words.size();
    const unsigned *grid = &now.grids[3 * size_t(number)], *gridBefore = &before.grids[3 * size_t(number)];
    if (std::equal(grid, grid + 3, gridBefore) && memcmp(&now.words[first], &before.words[first], (end - first) * 8) == 0) continue;
    const auto &kernel = *cuda.kernels()->Get(cuda.launches()->Get(number)->kernel());
    driver::KernelNode node{device.function(cuda.launches()->Get(number)->kernel()), {grid[0], grid[1], grid[2]}, {kernel.threads(), 1, 1}, kernel.shared_bytes(), pointers.data() + firstPointer[number],
                            nullptr};
    TARE_TRY(api.check(api.graphSetKernel(exec, nodes[number], &node), "a CUDA graph does not take new parameters"));
  }
  return {};
}

/// A graph is launched whole or not at all, so where the driver refuses it nothing has begun and plain launches do the same work.
Result<CudaRun::End> CudaRun::launchGraph(const Given &given) {
  Result<void> launched = exec ? updateGraph() : capture(given);
  if (launched) launched = api.check(api.graphLaunch(exec, stream), "a CUDA graph cannot be launched");
  if (launched) return ++launchedGraphs, End::Done;
  if (!driver::Driver::refusesGraphsOnly(launched.error().driverCode)) return std::move(launched.error());
  refusal = launched.error().driverCode;
  dropGraph();
  return launchAll(given, false);
}

void CudaRun::dropGraph() {
  if (exec) (void)api.graphExecDestroy(exec);
  if (graph) (void)api.graphDestroy(graph);
  exec = nullptr, graph = nullptr;
}

Result<void> CudaRun::readStamps(std::vector<int64_t> &stamps) const {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int64_t end = t.tv_sec * 1000000000 + t.tv_nsec;
  std::fill(stamps.begin(), stamps.end(), 0);
  stamps.back() = end;
  for (uint32_t number = 0; number < now.launched.size(); ++number) {
    uint32_t step = cuda.launches()->Get(number)->step();
    if (!now.launched[number] || stamps[step]) continue;
    float milliseconds = 0;
    TARE_TRY(api.check(api.eventElapsed(&milliseconds, events[step], events.back()), "a step cannot be timed"));
    stamps[step] = end - static_cast<int64_t>(1e6 * static_cast<double>(milliseconds));
  }
  return {};
}

Result<CudaRun::End> CudaRun::run(const Given &given, std::vector<int64_t> &stamps) {
  TARE_TRY(fill(given));
  CudaCurrent current(api, device.context());
  TARE_TRY(current.good());
  bool again = repeats();
  if (!again) dropGraph();
  Result<End> result = again && events.empty() && !refusal ? launchGraph(given) : launchAll(given, false);
  // Waited for in any case: what was launched uses memory that the caller may free next.
  driver::Code code = api.streamSynchronize(stream);
  if (result && code != 0) result = api.error(code, "the run failed on the GPU");
  if (result && !events.empty() && *result == End::Done)
    if (auto read = readStamps(stamps); !read) result = std::move(read.error());
  if (result && *result == End::Done) remember();
  else hasBefore = false, dropGraph();
  return result;
}

} // namespace tare
