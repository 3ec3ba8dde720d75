// What the fake driver knows: settings, memory, modules, streams, graphs, log. In: nothing. Out: one World, guarded by its mutex. Included by the fake alone.
#pragma once
#include "runtime/CudaDriver.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tare::fakecuda {
using namespace tare::driver;

inline constexpr uint64_t kTag = uint64_t(1) << 62; // no host address has this bit: following a device address on the host is a fault

struct HostKernel { // HostKernels.h, as the library of host kernels lays it out
  const char *name;
  int count;
  const int *bytes;
  void (*run)(const void *launch, void *const *parameters, void *outcome);
};
struct HostLaunch {
  unsigned grid[3], block[3], shared;
  void *memory;
  bool (*resolve)(unsigned long long device, void **host, unsigned long long *bytes);
};
struct HostOutcome {
  bool failed = false;
  char text[512] = {0};
};

struct FakeModule;
struct FakeFunction {
  std::string name;
  const FakeModule *module = nullptr;
  const HostKernel *host = nullptr;
  unsigned long long (*memory)(unsigned threads, unsigned shared) = nullptr; // that the emulator needs
  int shared = 48 * 1024; // most dynamic shared memory of a launch
};
struct FakeModule {
  std::string image;
  std::vector<std::unique_ptr<FakeFunction>> functions;
};
struct FakeKernel { // one launch, its parameters by value
  FakeFunction *function = nullptr;
  unsigned grid[3], block[3], shared = 0;
  std::vector<std::string> parameters;
};
struct FakeNode {
  std::function<Code()> work; // of a copy
  FakeKernel kernel;          // when kernel.function is set
};
struct FakeGraph { std::vector<std::unique_ptr<FakeNode>> nodes; };
struct FakeExec {
  FakeGraph *graph = nullptr;
  std::map<const FakeNode *, FakeKernel> kernels; // as they are now
};
struct FakeEvent { int64_t nanoseconds = -1; };
struct FakeStream {
  std::vector<std::function<Code()>> work;
  std::unique_ptr<FakeGraph> capture;
  FakeNode *last = nullptr; // of the capture
};

struct World {
  std::recursive_mutex mutex;
  std::map<std::string, int64_t> settings;
  std::map<std::string, Code> refused; // by a call's name
  std::string kernelLibrary, logText, wrongText, heldText;
  int64_t calls = 0;
  std::atomic<int64_t> launches{0}; // read by tests while a kernel runs
  std::map<Device, int> retained; // primary contexts
  bool isInitialised = false;
  std::map<uint64_t, size_t> memory; // device address -> bytes
  std::map<void *, size_t> pinned;
  std::set<FakeModule *> modules;
  std::set<FakeStream *> streams;
  std::set<FakeEvent *> events;
  std::set<FakeGraph *> graphs;
  std::set<FakeExec *> execs;

  World();
  ~World();
  void reset();
  void wrong(const std::string &what) { wrongText += what + "\n"; }
  size_t used() const;
  std::string held() const;
  int64_t capability(Device device);
  Code run(const FakeKernel &kernel);
};
World &world();

/// Every call starts here: logs, counts, and fails when its turn has come.
struct Call {
  std::lock_guard<std::recursive_mutex> lock;
  Code code = 0;
  explicit Call(const std::string &text, bool needsContext = true);
};

} // namespace tare::fakecuda
