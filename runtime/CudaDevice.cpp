// From driver to loaded kernels. Weights that several buffers share are uploaded once: the plan's Weight buffers become disjoint ranges of the section first.
#include "runtime/CudaDevice.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tare {
namespace {
constexpr uint64_t kWeightAlignment = 256; // as cuMemAlloc aligns

/// The architectures that engines are compiled for, and the CUDA version that brought each, as the driver counts.
constexpr struct { int capability, since; } kKnown[] = {{80, 11000}, {86, 11010}, {87, 11040}, {89, 11080}, {90, 11080}, {100, 12080}, {103, 12090}, {110, 13000}, {120, 12080}, {121, 12090}};

/// The version for an architecture; of an unknown one what the nearest before it needs.
int versionFor(int capability) {
  int version = driver::kOldestVersion;
  for (auto &row : kKnown)
    if (capability >= row.capability) version = row.since;
  return std::max(version, driver::kOldestVersion);
}
/// What to compile for so that it runs on a GPU: its own architecture, or the nearest before it; 0 when there is none.
int architectureFor(int capability) {
  int best = 0;
  for (auto &row : kKnown)
    if (capability >= row.capability) best = row.capability;
  return best;
}
/// The CUDA version that a PTX text needs, from its ".version 7.8"; 0 when it does not say.
int versionOfPtx(const char *text) {
  const char *at = strstr(text, ".version ");
  int major = 0, minor = 0;
  if (!at || sscanf(at, ".version %d.%d", &major, &minor) != 2) return 0;
  if (major == 7) return 11000 + 10 * minor;
  if (major == 8) return 12000 + 10 * (minor < 6 ? minor : minor + 1); // 8.6 came with 12.7, 8.7 with 12.8
  return (major + 4) * 1000 + 10 * minor;                              // 9.0: 13.0
}
} // namespace

CudaArchitecture CudaArchitecture::of(const char *name) {
  CudaArchitecture a;
  a.isPtx = name[0] == 'c';
  const char *digits = strchr(name, '_');
  a.capability = digits ? atoi(digits + 1) : 0;
  a.isExact = name[0] && name[strlen(name) - 1] == 'a';
  return a;
}

bool CudaArchitecture::runsOn(int device) const {
  if (isExact) return device == capability;
  return capability <= device && (isPtx || device / 10 == capability / 10);
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const EngineFile &file, const fb::Plan &plan, const char *asked, int ordinal) {
  std::unique_ptr<CudaDevice> made(new CudaDevice(file, plan));
  TARE_TRY(made->checkAsked(asked)); // before any driver is needed
  auto driver = driver::Driver::load(made->oldestVersion());
  if (!driver) return std::move(driver.error());
  made->driver = *driver;
  TARE_TRY(made->findDevice(ordinal));
  TARE_TRY(made->chooseImage(asked));
  made->findWeights();
  return made;
}

namespace {
/// "sm_80, sm_90, compute_80".
struct ImageList {
  char text[160] = {0};
  explicit ImageList(const fb::Cuda &cuda) {
    size_t used = 0;
    for (const auto *i : *cuda.images())
      if (used + 20 < sizeof text) used += static_cast<size_t>(snprintf(text + used, sizeof text - used, "%s%.16s", used ? ", " : "", i->arch()->c_str()));
  }
};
} // namespace

Result<void> CudaDevice::checkAsked(const char *asked) const {
  bool isThere = !*asked;
  for (const auto *i : *plan.cuda()->images()) isThere = isThere || strcmp(asked, i->arch()->c_str()) == 0;
  if (isThere) return {};
  return Error::format(Status::Environment, "the engine has no CUDA code of that name", "asked for: %s, it has %s; compile again for it, or ask for \"cuda\"", asked, ImageList(*plan.cuda()).text);
}

/// The CUDA version that a driver must know to take this image.
int CudaDevice::versionOfImage(const fb::CudaImage &from) const {
  auto is = CudaArchitecture::of(from.arch()->c_str());
  if (!is.isPtx) return versionFor(is.capability);
  int needed = driver::kOldestVersion;
  for (uint64_t offset : *from.offsets()) needed = std::max(needed, versionOfPtx(reinterpret_cast<const char *>(file.sections()[from.section()].data) + offset));
  return needed;
}

/// What any of the images is content with: all that can be said while no GPU is known. NVIDIA promises that a driver takes cubins of toolkits of its own major version
/// and of older ones ("minor version compatibility"); the toolkit's version is that of the PTX that it made as well.
int CudaDevice::oldestVersion() const {
  int least = INT32_MAX, major = 0;
  for (const auto *i : *plan.cuda()->images())
    if (CudaArchitecture::of(i->arch()->c_str()).isPtx) major = std::max(major, versionOfImage(*i) / 1000 * 1000);
  for (const auto *i : *plan.cuda()->images()) least = std::min(least, std::max(major, versionOfImage(*i)));
  return least == INT32_MAX ? driver::kOldestVersion : least;
}

/// With the names of those that are there.
Error CudaDevice::noSuchDevice(int ordinal, int count) const {
  char list[240] = {0};
  size_t used = 0;
  for (int i = 0; i < count && used + 64 < sizeof list; ++i) {
    driver::Device other = 0;
    char called[48] = {0};
    if (driver.deviceGet(&other, i) != 0 || driver.deviceName(called, sizeof called, other) != 0) continue;
    used += static_cast<size_t>(snprintf(list + used, sizeof list - used, "%s%d: %.47s", used ? ", " : "", i, called));
  }
  return Error::format(Status::Environment, "there is no such CUDA device", "device %d is asked for, the driver has %d (%s); they are counted from 0, as CUDA_VISIBLE_DEVICES leaves them", ordinal,
                       count, list);
}

Result<void> CudaDevice::findDevice(int ordinal) {
  int count = 0, major = 0, minor = 0;
  TARE_TRY(driver.check(driver.deviceCount(&count), "the CUDA driver does not count its devices"));
  if (count == 0)
    return Error::format(Status::Environment, "no CUDA device", "the driver (CUDA %d.%d) finds none; see nvidia-smi and CUDA_VISIBLE_DEVICES, or run with --target cpu", driver.version / 1000,
                         driver.version % 1000 / 10);
  if (ordinal < 0 || ordinal >= count) return noSuchDevice(ordinal, count);
  TARE_TRY(driver.check(driver.deviceGet(&device, ordinal), "the CUDA device cannot be used"));
  TARE_TRY(driver.check(driver.deviceName(deviceName, sizeof deviceName, device), "the CUDA device does not say its name"));
  deviceName[sizeof deviceName - 1] = 0;
  size_t used = strlen(deviceName);
  if (ordinal > 0) snprintf(deviceName + used, sizeof deviceName - used, " (device %d)", ordinal);
  TARE_TRY(driver.check(driver.deviceAttribute(&major, driver::kCapabilityMajor, device), "the CUDA device does not say its capability"));
  TARE_TRY(driver.check(driver.deviceAttribute(&minor, driver::kCapabilityMinor, device), "the CUDA device does not say its capability"));
  capability = 10 * major + minor;
  return {};
}

Error CudaDevice::noImage(const char *asked) const {
  char advice[80];
  if (int target = architectureFor(capability)) snprintf(advice, sizeof advice, "compile again with --target cuda:sm_%d", target);
  else snprintf(advice, sizeof advice, "GPUs before sm_%d are not supported, use --target cpu", kKnown[0].capability);
  return Error::format(Status::Environment, *asked ? "the engine's code of that name does not run on this GPU" : "the engine has no code for this GPU", "%s is sm_%d, the engine has %s%s%s; %s", deviceName,
                       capability, ImageList(*plan.cuda()).text, *asked ? ", asked for: " : "", asked, advice);
}

Result<void> CudaDevice::chooseImage(const char *asked) {
  const fb::CudaImage *cubin = nullptr, *ptx = nullptr;
  for (const auto *i : *plan.cuda()->images()) {
    const char *arch = i->arch()->c_str();
    auto is = CudaArchitecture::of(arch);
    if (!is.runsOn(capability) || (*asked && strcmp(asked, arch) != 0)) continue;
    const fb::CudaImage *&best = is.isPtx ? ptx : cubin;
    if (!best || CudaArchitecture::of(best->arch()->c_str()).capability < is.capability) best = i;
  }
  image = cubin ? cubin : ptx, fallback = cubin ? ptx : nullptr;
  if (!image) return noImage(asked);
  int needed = versionOfImage(*image);
  if (driver.version < needed)
    return Error::format(Status::Environment, "the CUDA driver is too old", "it is for CUDA %d.%d, the engine's %s code needs %d.%d; update the NVIDIA driver, or run with --target cpu",
                         driver.version / 1000, driver.version % 1000 / 10, image->arch()->c_str(), needed / 1000, needed % 1000 / 10);
  snprintf(name, sizeof name, "cuda:%s", image->arch()->c_str());
  return {};
}

/// Which parts of the weights section kernels (and defaults of inputs) read.
void CudaDevice::findWeights() {
  std::vector<uint8_t> used(plan.buffers()->size());
  for (const auto *launch : *plan.cuda()->launches())
    for (const auto *argument : *launch->arguments())
      if (argument->kind() == fb::CudaArgumentKind::Buffer) used[plan.steps()->Get(launch->step())->buffers()->Get(argument->value())] = 1;
  for (uint32_t i = 0; i < used.size(); ++i) {
    const auto &buffer = *plan.buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::Weight || !(used[i] || buffer.tensor() >= 0)) continue;
    auto bytes = static_cast<uint64_t>(plan.dims()->Get(buffer.bytes())->code()->Get(1)); // Validate: a constant inside the section
    ranges.push_back({buffer.offset(), buffer.offset() + bytes, 0});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Range &r : ranges) {
    if (kept && r.begin < ranges[kept - 1].end) ranges[kept - 1].end = std::max(ranges[kept - 1].end, r.end);
    else if (kept && r.begin == ranges[kept - 1].begin) ranges[kept - 1] = r; // after one of no bytes
    else ranges[kept++] = r;
  }
  ranges.resize(kept);
  uint64_t at = 0;
  for (Range &r : ranges) r.at = at, at += (r.end - r.begin + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

Result<void> CudaDevice::load() {
  std::lock_guard<std::mutex> guard(loading);
  if (loaded) return {};
  if (!primary) TARE_TRY(driver.check(driver.contextRetain(&primary, device), "the CUDA device's context cannot be made"));
  CudaCurrent current(driver, primary);
  TARE_TRY(current.good());
  Result<void> done = loadKernels();
  if (done) done = loadWeights();
  if (!done) unload();
  loaded = static_cast<bool>(done);
  return done;
}

Result<void> CudaDevice::loadKernels() {
  uint32_t count = plan.cuda()->kernels()->size();
  modules.reserve(count), functions.reserve(count);
  for (uint32_t k = 0; k < count; ++k) {
    auto done = loadKernel(k, *image);
    if (!done && fallback && done.error().code == Status::Environment) done = loadKernel(k, *fallback);
    if (!done) return done;
  }
  return {};
}

Result<void> CudaDevice::loadKernel(uint32_t number, const fb::CudaImage &from) {
  const auto &kernel = *plan.cuda()->kernels()->Get(number);
  const uint8_t *data = file.sections()[from.section()].data + from.offsets()->Get(number);
  char log[256] = {0};
  int options[] = {driver::kJitErrorLog, driver::kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(static_cast<uintptr_t>(sizeof log))};
  driver::Module module = nullptr;
  if (driver::Code code = driver.moduleLoad(&module, data, 2, options, values)) {
    Error error = driver.error(code, "the CUDA driver does not take a kernel");
    log[sizeof log - 1] = 0, log[strcspn(log, "\r\n")] = 0;
    size_t said = strlen(error.detail);
    int version = CudaArchitecture::of(from.arch()->c_str()).isPtx ? versionOfPtx(reinterpret_cast<const char *>(data)) : 0;
    char needs[48] = {0};
    if (version > driver.version) snprintf(needs, sizeof needs, ", which needs CUDA %d.%d", version / 1000, version % 1000 / 10);
    snprintf(error.detail + said, sizeof error.detail - said, "; kernel %.80s, %s code%s, GPU sm_%d%s%s", kernel.name()->c_str(), from.arch()->c_str(), needs, capability, log[0] ? ": " : "", log);
    return error;
  }
  modules.push_back(module);
  driver::Function function = nullptr;
  TARE_TRY(driver.check(driver.moduleFunction(&function, module, kernel.name()->c_str()), "a kernel is not in its image"));
  if (kernel.shared_bytes() > 48 * 1024)
    TARE_TRY(driver.check(driver.functionSet(function, driver::kMaxDynamicShared, static_cast<int>(kernel.shared_bytes())), "the GPU has too little shared memory for a kernel"));
  functions.push_back(function);
  return {};
}

Result<void> CudaDevice::loadWeights() {
  uint64_t bytes = ranges.empty() ? 0 : ranges.back().at + (ranges.back().end - ranges.back().begin);
  if (bytes == 0) return {};
  const Section *section = file.find(format::SectionKind::Weights);
  if (driver::Code code = driver.memoryAlloc(&weights, bytes)) {
    weights = 0;
    size_t free, total;
    memory(free, total);
    if (code != driver::kOutOfMemory) return driver.error(code, "no device memory for the weights");
    return Error::format(Status::Limit, "the GPU's memory does not hold the weights", "%llu MiB are needed, %llu of %llu MiB are free; close other users of the GPU, or run with --target cpu",
                         static_cast<unsigned long long>((bytes >> 20) + 1), static_cast<unsigned long long>(free >> 20), static_cast<unsigned long long>(total >> 20));
  }
  for (const Range &r : ranges)
    if (r.end > r.begin) TARE_TRY(driver.check(driver.copyToDevice(weights + r.at, section->data + r.begin, r.end - r.begin), "the weights do not reach the GPU"));
  // From pageable memory the copies may still be on their way, and the contexts' streams do not wait for the default one.
  return driver.check(driver.streamSynchronize(nullptr), "the weights do not reach the GPU");
}

driver::Address CudaDevice::weight(uint32_t buffer) const {
  uint64_t offset = plan.buffers()->Get(buffer)->offset();
  auto after = std::upper_bound(ranges.begin(), ranges.end(), offset, [](uint64_t value, const Range &r) { return value < r.begin; });
  if (after == ranges.begin()) return 0;
  const Range &r = *--after;
  return weights + r.at + (offset - r.begin);
}

void CudaDevice::memory(size_t &free, size_t &total) const {
  if (driver.memoryInfo(&free, &total) != 0) free = total = 0;
}

/// What load made; the device's context is current.
void CudaDevice::unload() {
  if (weights) (void)driver.memoryFree(weights);
  for (driver::Module module : modules) (void)driver.moduleUnload(module);
  weights = 0, modules.clear(), functions.clear();
}

CudaDevice::~CudaDevice() {
  if (!primary) return;
  {
    CudaCurrent current(driver, primary, true);
    if (current.good()) unload();
  }
  (void)driver.contextRelease(device);
}

} // namespace tare
