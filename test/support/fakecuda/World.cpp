// The fake's state and the execution of kernels. Memory is filled with NaNs when it is given out.
#include "World.h"
#include "FakeDriver.h"
#include "Record.h"
#include <dlfcn.h>

namespace tare::fakecuda {

static thread_local std::vector<driver::Context> *contexts = nullptr; // of this thread; plain, so that it needs no destructor order
std::vector<driver::Context> &pushedContexts() {
  if (!contexts) contexts = new std::vector<driver::Context>;
  return *contexts;
}

World &world() {
  static World w;
  return w;
}

World::World() { reset(); }
World::~World() {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : nullptr;
  if (!file) return;
  fprintf(file, "%swrong:\n%sheld:\n%slaunches: %lld\n", logText.c_str(), wrongText.c_str(), held().c_str(), static_cast<long long>(launches.load()));
  fclose(file);
}

void World::reset() {
  settings = {{"capability", 90}, {"capability_1", 0}, {"capability_2", 0}, {"version", 12040}, {"devices", 1}, {"memory", int64_t(1) << 32}, {"fail_at", 0}, {"fail_with", 999}, {"cubin_refused", 0}, {"ptx_refused", 0}};
  for (auto &[key, value] : settings) {
    std::string name = "FAKE_CUDA_" + key;
    for (char &c : name) c = static_cast<char>(toupper(c));
    if (const char *given = getenv(name.c_str())) value = atoll(given);
  }
  const char *library = getenv("FAKE_CUDA_KERNELS");
  kernelLibrary = library ? library : "";
  refused.clear();
  if (const char *refusal = getenv("FAKE_CUDA_REFUSE"))
    if (const char *code = strchr(refusal, '=')) refused[std::string(refusal, code)] = atoi(code + 1);
  logText.clear(), wrongText.clear();
  calls = 0, launches = 0;
}

size_t World::used() const {
  size_t sum = 0;
  for (auto &[address, bytes] : memory) sum += bytes;
  return sum;
}

std::string World::held() const {
  std::string text;
  size_t contexts = 0;
  for (auto &[device, count] : retained) contexts += static_cast<size_t>(count);
  for (auto &[address, bytes] : memory) text += "device memory of " + std::to_string(bytes) + " bytes\n";
  for (auto &[address, bytes] : pinned) text += "pinned memory of " + std::to_string(bytes) + " bytes\n";
  for (auto &[count, what] : {std::pair(modules.size(), "modules"), std::pair(streams.size(), "streams"), std::pair(events.size(), "events"), std::pair(graphs.size(), "graphs"),
                              std::pair(execs.size(), "executable graphs"), std::pair(contexts, "retained contexts")})
    if (count) text += std::to_string(count) + " " + what + "\n";
  return text;
}

int64_t World::capability(Device device) {
  int64_t own = device ? settings["capability_" + std::to_string(device)] : 0;
  return own ? own : settings["capability"];
}

static bool resolve(unsigned long long device, void **host, unsigned long long *bytes) {
  auto &memory = world().memory;
  auto after = memory.upper_bound(device);
  if (after == memory.begin()) return false;
  auto &[start, size] = *--after;
  if (device >= start + size) return false;
  *host = reinterpret_cast<void *>(device & ~kTag), *bytes = start + size - device;
  return true;
}

Code World::run(const FakeKernel &k) {
  ++launches;
  const HostKernel *host = k.function->host;
  if (!host) return 0;
  static thread_local std::vector<char> *machine = nullptr;
  if (!machine) machine = new std::vector<char>;
  size_t bytes = k.function->memory(k.block[0] * k.block[1] * k.block[2], k.shared);
  if (machine->size() < bytes) machine->resize(bytes);
  HostLaunch launch{{k.grid[0], k.grid[1], k.grid[2]}, {k.block[0], k.block[1], k.block[2]}, k.shared, machine->data(), resolve};
  std::vector<const void *> parameters;
  for (auto &p : k.parameters) parameters.push_back(p.data());
  HostOutcome outcome;
  recordLaunch(k);
  host->run(&launch, const_cast<void *const *>(parameters.data()), &outcome);
  recordEnd();
  if (!outcome.failed) return 0;
  wrong("kernel " + k.function->name + ": " + outcome.text);
  return 719; // CUDA_ERROR_LAUNCH_FAILED
}

Call::Call(const std::string &text, bool needsContext) : lock(world().mutex) {
  World &w = world();
  w.logText += text + "\n";
  ++w.calls;
  auto refusal = w.refused.find(text.substr(0, text.find(' ')));
  if (w.calls == w.settings["fail_at"]) code = static_cast<Code>(w.settings["fail_with"]);
  else if (refusal != w.refused.end()) code = refusal->second;
  else if (needsContext && pushedContexts().empty()) w.wrong("no current context: " + text), code = 201;
}

} // namespace tare::fakecuda

using namespace tare::fakecuda;

extern "C" const FakeCuda *fake_cuda() {
  static const FakeCuda control = {
      [] { std::lock_guard lock(world().mutex); world().reset(); },
      [](const char *key, int64_t value) { std::lock_guard lock(world().mutex); world().settings.at(key) = value; },
      [](const char *library) { std::lock_guard lock(world().mutex); world().kernelLibrary = library; },
      [] { return world().logText.c_str(); },
      [] { std::lock_guard lock(world().mutex); return (world().heldText = world().held()).c_str(); },
      [] { return world().wrongText.c_str(); },
      [] { return world().calls; },
      [] { return world().launches.load(); },
      [] { return static_cast<int>(pushedContexts().size()); },
      [](const char *call, int code) { std::lock_guard lock(world().mutex); world().refused[call] = code; }};
  return &control;
}
