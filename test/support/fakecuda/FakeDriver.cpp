// The driver's functions by their exported names (runtime/CudaDriver.h lists them). A call that is made to fail does nothing, but what gives something back
// still does: a real driver reports earlier failures there, too.
#include "World.h"
#include <dlfcn.h>
#include <time.h>

using namespace tare::fakecuda;

namespace tare::fakecuda {
std::vector<driver::Context> &pushedContexts();
}

namespace {
constexpr int kMostDevices = 3;
int contextObjects[kMostDevices]; // the address of each is a device's primary context
Context contextOf(Device device) { return reinterpret_cast<Context>(&contextObjects[device]); }
Device deviceOf(Context context) { return static_cast<Device>(reinterpret_cast<int *>(context) - contextObjects); }
/// Of the context that is this thread's current one.
Device currentDevice() { return deviceOf(pushedContexts().back()); }
thread_local bool pendingCopies = false; // this thread's cuMemcpyHtoD from pageable memory, before it waits for the default stream

template <class Handle, class Object> bool take(std::set<Object *> &from, Handle handle, const char *what) {
  auto *object = reinterpret_cast<Object *>(handle);
  if (!from.erase(object)) return world().wrong(std::string("not a live ") + what), false;
  delete object;
  return true;
}
template <class Object, class Handle> Object *find(std::set<Object *> &in, Handle handle, const char *what) {
  auto *object = reinterpret_cast<Object *>(handle);
  if (in.count(object)) return object;
  world().wrong(std::string("not a live ") + what);
  return nullptr;
}
std::string number(uint64_t v) { return std::to_string(v); }

/// The host address of [device, device + bytes), or null with a note.
char *hostOf(Address device, size_t bytes, const char *call) {
  auto &memory = world().memory;
  auto after = memory.upper_bound(device);
  if (after != memory.begin()) {
    auto &[start, size] = *--after;
    if (device + bytes <= start + size) return reinterpret_cast<char *>(device & ~kTag);
  }
  world().wrong(std::string(call) + ": " + number(bytes) + " bytes at an address that is not (all) allocated");
  return nullptr;
}
bool isPinned(const void *host, size_t bytes) {
  for (auto &[start, size] : world().pinned)
    if (host >= start && static_cast<const char *>(host) + bytes <= static_cast<char *>(start) + size) return true;
  return false;
}
/// Now, in a capture, or when the stream is waited for.
Code enqueue(FakeStream *s, std::function<Code()> work, FakeKernel kernel = {}) {
  if (!s) return 400;
  if (!s->capture) {
    s->work.push_back(std::move(work));
    return 0;
  }
  s->capture->nodes.push_back(std::make_unique<FakeNode>(FakeNode{std::move(work), std::move(kernel)}));
  s->last = s->capture->nodes.back().get();
  return 0;
}
FakeStream *streamOf(Stream s) { return find(world().streams, s, "stream"); }
Code wait(FakeStream *s) {
  Code first = 0;
  for (auto &work : s->work)
    if (!first) first = work();
  s->work.clear();
  return first;
}
FakeKernel kernelOf(Function f, const unsigned *grid, const unsigned *block, unsigned shared, void **arguments) {
  FakeKernel k{reinterpret_cast<FakeFunction *>(f), {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared, {}};
  for (int i = 0; k.function->host && i < k.function->host->count; ++i) k.parameters.emplace_back(static_cast<const char *>(arguments[i]), k.function->host->bytes[i]);
  return k;
}
Code geometryError(const FakeKernel &k) {
  uint64_t threads = uint64_t(k.block[0]) * k.block[1] * k.block[2];
  bool bad = !k.grid[0] || !k.grid[1] || !k.grid[2] || k.grid[0] > 0x7fffffffu || k.grid[1] > 65535 || k.grid[2] > 65535 || threads == 0 || threads > 1024 ||
             k.shared > static_cast<unsigned>(k.function->shared);
  if (bad) world().wrong("a launch that no GPU takes: " + k.function->name);
  return bad ? 1 : 0;
}
/// Shared memory that a block may have, in bytes (CUDA C++ Programming Guide, "Technical specifications per compute capability"); the least for what is not listed.
int mostShared(int capability) {
  static const std::map<int, int> kilobytes = {{80, 163}, {86, 99}, {87, 163}, {89, 99}, {90, 227}, {100, 227}, {103, 227}, {120, 99}, {121, 99}};
  auto found = kilobytes.find(capability);
  return (found == kilobytes.end() ? 99 : found->second) * 1024;
}
/// The architecture that an image is for: from cubin flags, from PTX's .target, or from the text "FAKE sm_90".
int architecture(const std::string &image) {
  if (image.size() > 64 && memcmp(image.data(), "\x7f" "ELF", 4) == 0) {
    uint32_t flags;
    memcpy(&flags, image.data() + 48, 4);
    return static_cast<int>(image[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff);
  }
  size_t at = image.find("sm_");
  return at == std::string::npos ? 0 : atoi(image.c_str() + at + 3);
}
} // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) Code
#define ENTER(...)                                                                                                     \
  Call call(__VA_ARGS__);                                                                                              \
  if (call.code) return call.code

FAKE cuInit(unsigned) {
  ENTER("cuInit", false);
  if (world().settings["devices"] == 0) return kNoDevice;
  world().isInitialised = true;
  return 0;
}
FAKE cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion", false);
  *version = static_cast<int>(world().settings["version"]);
  return 0;
}
FAKE cuGetErrorName(Code code, const char **name) {
  static const std::map<int, const char *> names = {{1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {100, "CUDA_ERROR_NO_DEVICE"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {500, "CUDA_ERROR_NOT_FOUND"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}, {999, "CUDA_ERROR_UNKNOWN"}};
  auto found = names.find(code);
  *name = found == names.end() ? "CUDA_ERROR_OTHER" : found->second;
  return 0;
}
FAKE cuGetErrorString(Code, const char **text) {
  *text = "said by the fake driver";
  return 0;
}
FAKE cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", false);
  *count = static_cast<int>(world().settings["devices"]);
  return world().isInitialised ? 0 : 3;
}
FAKE cuDeviceGet(Device *device, int ordinal) {
  ENTER("cuDeviceGet " + number(static_cast<uint64_t>(ordinal)), false);
  *device = ordinal;
  return ordinal < world().settings["devices"] && ordinal < kMostDevices ? 0 : 101;
}
FAKE cuDeviceGetName(char *name, int bytes, Device device) {
  ENTER("cuDeviceGetName", false);
  device ? snprintf(name, static_cast<size_t>(bytes), "Fake GPU #%d", device) : snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
}
FAKE cuDeviceGetAttribute(int *value, int attribute, Device device) {
  ENTER("cuDeviceGetAttribute " + number(static_cast<uint64_t>(attribute)), false);
  auto capability = static_cast<int>(world().capability(device));
  *value = attribute == kCapabilityMajor ? capability / 10 : attribute == kCapabilityMinor ? capability % 10 : 132;
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(Context *context, Device device) {
  ENTER("cuDevicePrimaryCtxRetain", false);
  ++world().retained[device];
  *context = contextOf(device);
  return 0;
}
FAKE cuDevicePrimaryCtxRelease_v2(Device device) {
  Call call("cuDevicePrimaryCtxRelease", false);
  if (--world().retained[device] < 0) world().wrong("primary context released too often");
  return call.code;
}
FAKE cuCtxPushCurrent_v2(Context context) {
  ENTER("cuCtxPushCurrent", false);
  if (!world().retained[deviceOf(context)]) return world().wrong("pushed a context that is not retained"), 201;
  pushedContexts().push_back(context);
  return 0;
}
FAKE cuCtxPopCurrent_v2(Context *context) {
  Call call("cuCtxPopCurrent", false);
  auto &pushed = pushedContexts();
  if (pushed.empty()) return world().wrong("popped more than was pushed"), 201;
  if (context) *context = pushed.back();
  pushed.pop_back();
  return call.code;
}
FAKE cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER("cuMemGetInfo");
  *total = static_cast<size_t>(world().settings["memory"]), *free = *total - std::min(*total, world().used());
  return 0;
}
FAKE cuMemAlloc_v2(Address *address, size_t bytes) {
  ENTER("cuMemAlloc " + number(bytes));
  if (bytes == 0) return world().wrong("cuMemAlloc of 0 bytes"), 1;
  if (world().used() + bytes > static_cast<size_t>(world().settings["memory"])) return kOutOfMemory;
  void *host = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(host, 0xff, bytes);
  *address = reinterpret_cast<uint64_t>(host) | kTag;
  world().memory[*address] = bytes;
  return 0;
}
FAKE cuMemFree_v2(Address address) {
  Call call("cuMemFree");
  if (!world().memory.erase(address)) return world().wrong("cuMemFree of what is not allocated"), 1;
  free(reinterpret_cast<void *>(address & ~kTag));
  return call.code;
}
FAKE cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc " + number(bytes));
  if (bytes == 0) return world().wrong("cuMemHostAlloc of 0 bytes"), 1;
  *address = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(*address, 0xff, bytes);
  world().pinned[*address] = bytes;
  return 0;
}
FAKE cuMemFreeHost(void *address) {
  Call call("cuMemFreeHost");
  if (!world().pinned.erase(address)) return world().wrong("cuMemFreeHost of what is not allocated"), 1;
  free(address);
  return call.code;
}
FAKE cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
  ENTER("cuMemcpyHtoD " + number(bytes));
  char *host = hostOf(to, bytes, "cuMemcpyHtoD");
  if (!host) return 1;
  memcpy(host, from, bytes);
  pendingCopies = true;
  return 0;
}
FAKE cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream stream) {
  ENTER("cuMemcpyHtoDAsync " + number(bytes));
  if (!isPinned(from, bytes)) world().wrong("cuMemcpyHtoDAsync from memory that is not pinned");
  return enqueue(streamOf(stream), [=] {
    char *host = hostOf(to, bytes, "cuMemcpyHtoDAsync");
    if (!host || !isPinned(from, bytes)) return 1;
    memcpy(host, from, bytes);
    return 0;
  });
}
FAKE cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream stream) {
  ENTER("cuMemcpyDtoHAsync " + number(bytes));
  if (!isPinned(to, bytes)) world().wrong("cuMemcpyDtoHAsync to memory that is not pinned");
  return enqueue(streamOf(stream), [=] {
    char *host = hostOf(from, bytes, "cuMemcpyDtoHAsync");
    if (!host || !isPinned(to, bytes)) return 1;
    memcpy(to, host, bytes);
    return 0;
  });
}
FAKE cuModuleLoadDataEx(Module *module, const void *image, unsigned count, int *options, void **values) {
  ENTER("cuModuleLoadDataEx");
  const char *text = static_cast<const char *>(image);
  bool isCubin = memcmp(text, "\x7f" "ELF", 4) == 0;
  size_t bytes = strlen(text);
  if (isCubin) { // the section headers come last
    uint64_t table;
    uint16_t each, sections;
    memcpy(&table, text + 40, 8), memcpy(&each, text + 58, 2), memcpy(&sections, text + 60, 2);
    bytes = table + uint64_t(each) * sections;
  }
  auto made = std::make_unique<FakeModule>();
  made->image.assign(text, bytes);
  bool isText = !isCubin && made->image.compare(0, 4, "FAKE") != 0; // PTX
  int asked = architecture(made->image), have = static_cast<int>(world().capability(currentDevice()));
  bool fits = isText ? asked <= have : asked / 10 == have / 10 && asked <= have;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == kJitErrorLog) snprintf(static_cast<char *>(values[i]), 32, "fake ptxas: no\nsecond line");
  if (world().settings["cubin_refused"] && !isText) return kNoBinary;
  if (world().settings["ptx_refused"] && isText) return kUnsupportedPtx;
  if (!asked || !fits) return kNoBinary;
  *module = reinterpret_cast<Module>(made.get());
  world().modules.insert(made.release());
  return 0;
}
FAKE cuModuleUnload(Module module) {
  Call call("cuModuleUnload");
  return take(world().modules, module, "module") ? call.code : 1;
}
FAKE cuModuleGetFunction(Function *function, Module module, const char *name) {
  ENTER(std::string("cuModuleGetFunction ") + name);
  auto *in = find(world().modules, module, "module");
  if (!in || in->image.find(name) == std::string::npos) return 500;
  auto made = std::make_unique<FakeFunction>();
  made->name = name, made->module = in;
  if (!world().kernelLibrary.empty()) {
    void *library = dlopen(world().kernelLibrary.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto *list = library ? static_cast<const HostKernel *>(dlsym(library, "tare_host_kernels")) : nullptr;
    for (; list && list->name; ++list)
      if (made->name == list->name) made->host = list, made->memory = reinterpret_cast<unsigned long long (*)(unsigned, unsigned)>(dlsym(library, "tare_host_memory"));
    if (!made->host) world().wrong("no host kernel " + made->name + " in " + world().kernelLibrary);
  }
  *function = reinterpret_cast<Function>(made.get());
  in->functions.push_back(std::move(made));
  return 0;
}
FAKE cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER("cuFuncSetAttribute " + number(static_cast<uint64_t>(attribute)) + " " + number(static_cast<uint64_t>(value)));
  if (attribute == kMaxDynamicShared) reinterpret_cast<FakeFunction *>(function)->shared = value;
  return value <= mostShared(static_cast<int>(world().capability(currentDevice()))) ? 0 : 1;
}
FAKE cuLaunchKernel(Function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, Stream stream, void **arguments, void **) {
  unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  ENTER("cuLaunchKernel " + reinterpret_cast<FakeFunction *>(f)->name);
  FakeKernel k = kernelOf(f, grid, block, shared, arguments);
  if (Code code = geometryError(k)) return code;
  if (pendingCopies) world().wrong("a launch while copies of the default stream may be on their way");
  return enqueue(streamOf(stream), [k] { return world().run(k); }, k);
}
FAKE cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate");
  *stream = reinterpret_cast<Stream>(*world().streams.insert(new FakeStream).first);
  return 0;
}
FAKE cuStreamDestroy_v2(Stream stream) {
  Call call("cuStreamDestroy");
  if (auto *s = streamOf(stream); s && !s->work.empty()) world().wrong("cuStreamDestroy of a stream with work that nobody waited for");
  return take(world().streams, stream, "stream") ? call.code : 1;
}
FAKE cuStreamSynchronize(Stream stream) {
  Call call(stream ? "cuStreamSynchronize" : "cuStreamSynchronize 0");
  if (!stream) return pendingCopies = false, call.code;
  auto *s = streamOf(stream);
  if (!s || s->capture) return world().wrong("cuStreamSynchronize of a stream that captures"), 900;
  Code did = wait(s);
  return call.code ? call.code : did;
}
FAKE cuStreamBeginCapture_v2(Stream stream, int) {
  ENTER("cuStreamBeginCapture");
  auto *s = streamOf(stream);
  if (!s || s->capture) return 900;
  s->capture = std::make_unique<FakeGraph>(), s->last = nullptr;
  return 0;
}
FAKE cuStreamGetCaptureInfo_v2(Stream stream, int *status, uint64_t *id, Graph *graph, const GraphNode **last, size_t *count) {
  ENTER("cuStreamGetCaptureInfo");
  auto *s = streamOf(stream);
  if (!s) return 400;
  *status = s->capture ? kCaptureActive : 0;
  if (id) *id = 1;
  if (graph) *graph = reinterpret_cast<Graph>(s->capture.get());
  if (last) *last = reinterpret_cast<GraphNode *>(&s->last);
  if (count) *count = s->last ? 1 : 0;
  return 0;
}
FAKE cuStreamEndCapture(Stream stream, Graph *graph) {
  Call call("cuStreamEndCapture");
  auto *s = streamOf(stream);
  if (!s || !s->capture) return world().wrong("cuStreamEndCapture without a capture"), 901;
  auto captured = std::move(s->capture);
  *graph = nullptr;
  if (call.code) return call.code;
  *graph = reinterpret_cast<Graph>(captured.get());
  world().graphs.insert(captured.release());
  return 0;
}
FAKE cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  ENTER("cuGraphInstantiate");
  auto *from = find(world().graphs, graph, "graph");
  if (!from) return 1;
  auto *made = new FakeExec{from, {}};
  for (auto &node : from->nodes)
    if (node->kernel.function) made->kernels[node.get()] = node->kernel;
  world().execs.insert(made);
  *exec = reinterpret_cast<GraphExec>(made);
  return 0;
}
FAKE cuGraphExecKernelNodeSetParams(GraphExec exec, GraphNode node, const KernelNode *k) {
  ENTER("cuGraphExecKernelNodeSetParams " + reinterpret_cast<FakeFunction *>(k->function)->name);
  auto *e = find(world().execs, exec, "executable graph");
  if (!e || !world().graphs.count(e->graph)) return world().wrong("a node of a graph that is gone"), 1;
  auto found = e->kernels.find(reinterpret_cast<const FakeNode *>(node));
  if (found == e->kernels.end()) return world().wrong("not a kernel node of this graph"), 1;
  found->second = kernelOf(k->function, k->grid, k->block, k->sharedBytes, k->arguments);
  return geometryError(found->second);
}
FAKE cuGraphLaunch(GraphExec exec, Stream stream) {
  ENTER("cuGraphLaunch");
  auto *e = find(world().execs, exec, "executable graph");
  if (!e) return 1;
  std::vector<std::function<Code()>> all;
  for (auto &node : e->graph->nodes) {
    if (auto found = e->kernels.find(node.get()); found != e->kernels.end()) all.push_back([k = found->second] { return world().run(k); });
    else all.push_back(node->work);
  }
  return enqueue(streamOf(stream), [all] {
    for (auto &work : all)
      if (Code code = work()) return code;
    return 0;
  });
}
FAKE cuGraphExecDestroy(GraphExec exec) {
  Call call("cuGraphExecDestroy");
  return take(world().execs, exec, "executable graph") ? call.code : 1;
}
FAKE cuGraphDestroy(Graph graph) {
  Call call("cuGraphDestroy");
  return take(world().graphs, graph, "graph") ? call.code : 1;
}
FAKE cuEventCreate(Event *event, unsigned) {
  ENTER("cuEventCreate");
  *event = reinterpret_cast<Event>(*world().events.insert(new FakeEvent).first);
  return 0;
}
FAKE cuEventRecord(Event event, Stream stream) {
  ENTER("cuEventRecord");
  auto *e = find(world().events, event, "event");
  if (!e) return 400;
  return enqueue(streamOf(stream), [e] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    e->nanoseconds = t.tv_sec * 1000000000 + t.tv_nsec;
    return 0;
  });
}
FAKE cuEventElapsedTime(float *milliseconds, Event from, Event to) {
  ENTER("cuEventElapsedTime");
  auto *a = find(world().events, from, "event"), *b = find(world().events, to, "event");
  if (!a || !b || a->nanoseconds < 0 || b->nanoseconds < 0) return world().wrong("cuEventElapsedTime of an event that has not happened"), 600;
  *milliseconds = static_cast<float>(static_cast<double>(b->nanoseconds - a->nanoseconds) * 1e-6);
  return 0;
}
FAKE cuEventDestroy_v2(Event event) {
  Call call("cuEventDestroy");
  return take(world().events, event, "event") ? call.code : 1;
}
