// One request's state: inputs, outputs, arena, linked states, threads or a GPU's stream. In: an engine and caller's tensors. Out: results. Must hold: after a
// successful run at given shapes, a run at the same shapes allocates nothing; a failed run changes no linked state.
#pragma once
#include "runtime/Binding.h"
#include "runtime/CheckSchedule.h"
#include "runtime/CudaRun.h"
#include "runtime/Engine.h"
#include "runtime/Layout.h"
#include "runtime/Memory.h"
#include "runtime/ThreadPool.h"
#include <atomic>

namespace tare {

/// What the fidelity checks hold at bound shapes.
Result<void> checkMemoryAt(const fb::Plan &plan, const Binding &binding, tare_check_memory &memory);

class Context {
public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Engine> engine, const tare_context_options &options);
  const Engine &engine() const { return *shared; }

  Result<void> setInput(const char *name, const tare_tensor *tensor);
  Result<void> setOutput(const char *name, const tare_tensor *tensor);
  Result<void> requestOutputs(const char *const *names, size_t count);
  Result<void> run();
  Result<void> getOutput(const char *name, tare_tensor &tensor);
  void cancel() { cancelled.store(true, std::memory_order_relaxed); }

  Result<void> linkState(const char *input, const char *output, int64_t capacity); // ContextState.cpp
  void reset();

  Result<void> estimate(tare_estimate &result) const; // Profile.cpp
  Result<void> stepInfo(size_t index, tare_step_info &info) const;
  Result<void> checkStats(tare_check_stats &stats) const;
  Result<void> checkMemory(tare_check_memory &memory) const;
  Result<void> traceChecks(bool on);
  Result<void> checkTrace(size_t check, tare_check_trace &trace) const;
  Result<uint32_t> checkBits(size_t check, size_t element) const { return schedule.bits(check, element); }
  size_t profile(char *buffer, size_t capacity) const;
  size_t metrics(char *buffer, size_t capacity) const;

private:
  struct Input {
    const void *data = nullptr; // the caller's
    Block staging;              // a copy when misaligned, or the default when left out
    const void *address = nullptr;
    const void *own = nullptr; // its default in the weights
    int32_t ownBuffer = -1;    // the plan buffer of that
    uint64_t place = 0;        // in the exchange with a GPU
  };
  struct Output {
    void *data = nullptr; // the caller's
    uint64_t bytes = 0;   // of the caller's
    Block own, staging;   // context-owned; copied to the caller's when that is misaligned
    bool asked = true;    // by requestOutputs; one with a caller's buffer or a linked state is computed in any case
    void *address = nullptr;
    int64_t dims[8] = {0};
    uint64_t needed = 0;
    uint64_t place = 0; // in the exchange with a GPU
  };
  struct State { // linked: one block holds input and output
    LinkedCapacity link;
    int64_t length = 0;
    int64_t dims[8] = {0}; // as allocated, with the capacity at the axis
    Block block;
  };

  Context(std::shared_ptr<const Engine> engine, const tare_context_options &options);
  Result<void> prepare();
  Result<void> prepareInputs();
  bool requested(size_t output) const;
  /// The context keeps it as a state and feeds it back: there is no buffer of the caller's and none of its own.
  bool isLinked(size_t output) const;
  // ContextCuda.cpp
  /// Left out by the caller, and its default lies in the weights.
  bool isWeight(size_t input) const;
  /// An input whose bytes a run sends to the GPU: some step reads it, and it is neither a state nor a weight.
  bool isSent(size_t input) const;
  /// An output that a run brings back.
  bool isFetched(size_t output) const;
  void prepareSteps();
  Result<void> prepareOutputs();
  Result<void> prepareStates();
  Result<void> prepareArena();
  Result<void> beginChecks();
  Result<void> readInputs();
  bool misaligned(const void *data, fb::DType type) const;
  Result<void> execute();
  Error faultError(int64_t fault) const;
  uint64_t stateCapacity(size_t state) const { return gpu ? gpu->stateCapacity(state) : states[state].block.capacity(); }
  Result<void> prepareGpu(); // ContextCuda.cpp
  void fillGpuBuffers();
  Result<void> executeOnGpu();
  Result<void> tensorBytes(const fb::Tensor &tensor, uint64_t &bytes) const;
  void fillBuffers();
  void advanceStates();
  int64_t nanoseconds(size_t step) const;
  static int64_t barrierCallback(void *context, int64_t thread);
  static void stampCallback(void *context, int64_t step);
  static void threadBody(void *context, int thread);

  std::shared_ptr<const Engine> shared;
  const fb::Plan &plan;
  Binding binding;
  CheckSchedule schedule;
  Layout layout;
  std::vector<uint32_t> arenaBuffers; // plan buffers that lie in the arena, in the layout's order
  std::vector<Shape> shapes;          // per input
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<State> states;
  std::vector<LinkedCapacity> links; // per state
  std::vector<int32_t> stateOfInput, stateOfOutput;
  std::vector<uint32_t> bufferOfOutput;
  std::vector<int32_t> bufferOfInput;
  std::vector<void *> addresses; // per plan buffer
  std::vector<uint8_t> skipped;  // per step: no requested output needs it
  std::vector<uint8_t> touched;  // per plan buffer: a step that runs reads or writes it
  std::vector<int64_t> faults;   // per thread
  std::vector<int64_t> stamps;   // nanoseconds, steps + 1, when a profile is asked for
  Block arena;
  std::unique_ptr<CudaRun> gpu; // null on the CPU
  struct {                      // with it: places in the exchange, addresses per plan buffer and per check
    bool listed = false; // a launch wants the list of rows
    uint64_t rows = 0, anchors = 0, first = 0, carried = 0, last = 0, fault = 0;
    std::vector<uint64_t> addresses;
    std::vector<CheckRows> checks;
  } onGpu;
  ThreadPool pool;
  Barrier barrier;
  tare_code_entry entry = nullptr;
  tare_code_args arguments{};
  tare_parallel parallel = nullptr;
  void *parallelUser = nullptr;
  int threads = 1;
  bool isEmulated = false; // the code is CUDA text
  std::atomic<bool> cancelled{false}, stopped{false};
  bool dirty = true, ran = false;
  uint64_t arenaBytes = 0;
  // metrics
  uint64_t runs = 0, failures = 0, cancellations = 0;
  double seconds = 0, lastSeconds = 0, flopsDone = 0;
  CheckCounts checkTotals;
};

} // namespace tare
