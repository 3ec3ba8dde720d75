// One context's work on a GPU: a stream, device memory, pinned memory for what goes in and out, and the launches of a plan, as a CUDA graph when they repeat. In:
// an address per plan buffer, resolved dims, rows of the fidelity checks. Out: results in pinned memory. Must hold: work of a run is over when run() returns,
// whatever it returns; at known sizes nothing is allocated; all is given back by the destructor.
#pragma once
#include "runtime/Binding.h"
#include "runtime/CheckSchedule.h"
#include "runtime/CudaDevice.h"
#include <atomic>

namespace tare {

/// Device memory, or pinned host memory, of one context.
class CudaBlock {
public:
  driver::Address device() const { return address; }
  char *host() const { return pinned; }
  size_t capacity() const { return size; }
  /// At least `bytes`; growing keeps no contents, and adds a quarter when there is room. Error Limit says how much was asked for what, and what is free.
  Result<void> reserve(const CudaDevice &owner, size_t bytes, const char *what, bool isPinned = false);
  void release(const CudaDevice &owner);

private:
  driver::Code allocate(const driver::Driver &api, size_t bytes, bool isPinned);
  driver::Address address = 0;
  char *pinned = nullptr;
  size_t size = 0;
};

class CudaRun {
public:
  static Result<std::unique_ptr<CudaRun>> create(CudaDevice &device, const fb::Plan &plan, bool profile);
  ~CudaRun();
  CudaRun(const CudaRun &) = delete;
  CudaRun &operator=(const CudaRun &) = delete;

  /// The exchange: one block on both sides. Bytes [0, upEnd) are copied to the device before the launches, [downBegin, end) back after them.
  struct Exchange { uint64_t upEnd = 0, downBegin = 0, end = 0; };
  /// Memory for a run of these sizes; the addresses below are valid afterwards.
  Result<void> reserve(uint64_t arenaBytes, const Exchange &exchange);
  Result<void> reserveState(size_t state, uint64_t bytes);
  void releaseState(size_t state);
  uint64_t stateCapacity(size_t state) const { return states[state].capacity(); }
  driver::Address state(size_t state) const { return states[state].device(); }
  driver::Address arena() const { return scratch.device(); }
  driver::Address onDevice(uint64_t exchangeOffset) const { return deviceSide.device() + exchangeOffset; }
  char *onHost(uint64_t exchangeOffset) const { return hostSide.host() + exchangeOffset; }

  /// What a run passes to the kernels. `checks[i]` has device addresses.
  struct Given {
    const driver::Address *buffers; // per plan buffer
    const Binding &binding;
    const CheckRows *checks;
    driver::Address fault;
    const uint8_t *skipped; // per step
    const std::atomic<bool> &cancelled;
  };
  enum class End { Done, Cancelled };
  /// The code with which the driver refused a graph; every run since is made of plain launches. 0: it refused none.
  driver::Code graphRefusal() const { return refusal; }
  int64_t graphLaunches() const { return launchedGraphs; }
  /// Copies, launches, copies back, waits. With a profile `stamps` gets the start of each step in nanoseconds (0: did not run) and, last, the end.
  Result<End> run(const Given &given, std::vector<int64_t> &stamps);

private:
  CudaRun(CudaDevice &device, const fb::Plan &plan);
  Result<void> fill(const Given &given);
  Result<void> fillGrid(uint32_t launch, const Binding &binding);
  bool repeats() const;
  Result<End> launchAll(const Given &given, bool capturing);
  Result<void> launchOne(uint32_t launch);
  Result<void> noteNode(uint32_t launch);
  Result<End> launchGraph(const Given &given);
  Result<void> capture(const Given &given);
  Result<void> updateGraph();
  Result<void> readStamps(std::vector<int64_t> &stamps) const;
  void dropGraph();
  void remember();

  CudaDevice &device;
  const driver::Driver &api;
  const fb::Plan &plan;
  const fb::Cuda &cuda;
  driver::Stream stream = nullptr;
  CudaBlock scratch, deviceSide, hostSide;
  std::vector<CudaBlock> states;
  Exchange exchange;

  struct Parameters { // of all launches, back to back
    std::vector<uint64_t> words;
    std::vector<unsigned> grids;   // three per launch
    std::vector<uint8_t> launched; // its step runs, and no size of its grid is 0
  } now, before;
  std::vector<uint32_t> firstWord, firstPointer; // per launch, and the end
  std::vector<void *> pointers;                  // per parameter, into now.words
  // The run before this one, when it succeeded: the same copies and launches again make a graph worth its while.
  bool hasBefore = false;
  Exchange exchangeBefore;
  driver::Address deviceBefore = 0;
  char *hostBefore = nullptr;
  driver::Graph graph = nullptr;
  driver::GraphExec exec = nullptr;
  std::vector<driver::GraphNode> nodes; // per launch, of the graph
  driver::Code refusal = 0;
  int64_t launchedGraphs = 0;
  std::vector<driver::Event> events;    // with a profile: before each step, and the end
};

} // namespace tare
