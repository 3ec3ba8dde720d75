// Kernels of an engine as functions of the host, for the fake driver. A generated file includes this, then the kernels' .cu texts, then lists them:
//   TARE_HOST_KERNELS(TARE_HOST(kernel_a), TARE_HOST(kernel_b))
// In: a launch with its parameters as cuLaunchKernel gets them. Out: every block executed on the emulator (kernels/cuda/emu), buffers bounded by the
// allocation that they lie in. The C++ types of the parameters say how each is unpacked, so a launch that passes them in another order fails or computes nonsense.
#pragma once
#include "kernels/cuda/check.cuh"
#include <cstddef>
#include <tuple>
#include <utility>

namespace tare::fakecuda {

struct Launch {
  unsigned grid[3], block[3], shared;
  void *memory; ///< machineBytes(threads, shared)
  /// The host address behind a device address, and the bytes from there to the end of its allocation; false for what is no device address.
  bool (*resolve)(u64 device, void **host, u64 *bytes);
};
struct Outcome {
  bool failed = false;
  char text[512] = {0};
};
struct HostKernel {
  const char *name;
  int count;
  const int *bytes; ///< of each parameter
  void (*run)(const Launch &, void *const *parameters, Outcome &);
};

struct Unpack {
  const Launch &launch;
  Outcome &outcome;
  template <class T> global<T> buffer(u64 device, const char *name) const {
    void *host = nullptr;
    u64 bytes = 0;
    if (device && !launch.resolve(device, &host, &bytes) && !outcome.failed) {
      outcome.failed = true;
      emu::Text(outcome.text, sizeof outcome.text) << "parameter " << name << " is no device address";
    }
    return {static_cast<T *>(host), static_cast<i64>(bytes / sizeof(T)), name, nullptr};
  }
};
template <class T> struct Parameter;
template <> struct Parameter<i64> {
  static constexpr int kBytes = 8;
  static i64 take(const Unpack &, const void *from) { return *static_cast<const i64 *>(from); }
};
template <class T> struct Parameter<global<T>> {
  static constexpr int kBytes = 8;
  static global<T> take(const Unpack &unpack, const void *from) { return unpack.buffer<T>(*static_cast<const u64 *>(from), "buffer"); }
};
template <> struct Parameter<ListedRun> {
  struct OnDevice { // as a GPU compiler lays ListedRun out: bare pointers
    u64 rows;
    i64 count, tokens;
    u64 carried, last;
  };
  static constexpr int kBytes = sizeof(OnDevice);
  static ListedRun take(const Unpack &unpack, const void *from) {
    const OnDevice &d = *static_cast<const OnDevice *>(from);
    return {unpack.buffer<const i64>(d.rows, "rows"), d.count, d.tokens, unpack.buffer<const u32>(d.carried, "carried"), unpack.buffer<u32>(d.last, "last")};
  }
};

template <> struct Parameter<CheckRun> {
  struct OnDevice {
    u64 anchors;
    i64 anchorCount;
    u64 first;
    i64 tokens, past;
    u64 carried, last;
  };
  static constexpr int kBytes = sizeof(OnDevice);
  static CheckRun take(const Unpack &unpack, const void *from) {
    const OnDevice &d = *static_cast<const OnDevice *>(from);
    return {unpack.buffer<const int>(d.anchors, "anchors"), d.anchorCount, unpack.buffer<const i64>(d.first, "first"), d.tokens, d.past, unpack.buffer<const u32>(d.carried, "carried"),
            unpack.buffer<u32>(d.last, "last")};
  }
};

template <auto Kernel> struct Host;
template <class... P, void (*Kernel)(P...)> struct Host<Kernel> {
  static constexpr int kBytes[sizeof...(P) + 1] = {Parameter<P>::kBytes..., 0};
  template <size_t... I> static void runOn(const Launch &l, void *const *parameters, Outcome &outcome, std::index_sequence<I...>) {
    const Unpack unpack{l, outcome};
    const std::tuple<P...> values{Parameter<P>::take(unpack, parameters[I])...};
    if (outcome.failed) return;
    emu::Report report;
    emu::launch(l.memory, {{l.grid[0], l.grid[1], l.grid[2]}, {l.block[0], l.block[1], l.block[2]}, l.shared}, "kernel", 1, report, 0, 1, [&] { std::apply(Kernel, values); });
    outcome.failed = report.kind() != emu::Fault::None;
    for (size_t i = 0; outcome.failed && i + 1 < sizeof outcome.text && i < sizeof report.text; ++i) outcome.text[i] = report.text[i];
  }
  static void run(const Launch &l, void *const *parameters, Outcome &outcome) { runOn(l, parameters, outcome, std::index_sequence_for<P...>()); }
};

} // namespace tare::fakecuda

#define TARE_HOST(NAME) {#NAME, sizeof(tare::fakecuda::Host<&tare::NAME>::kBytes) / sizeof(int) - 1, tare::fakecuda::Host<&tare::NAME>::kBytes, &tare::fakecuda::Host<&tare::NAME>::run}
#define TARE_HOST_KERNELS(...)                                                                                                          \
  extern "C" __attribute__((visibility("default"))) const tare::fakecuda::HostKernel tare_host_kernels[] = {__VA_ARGS__, {nullptr, 0, nullptr, nullptr}}; \
  extern "C" __attribute__((visibility("default"))) unsigned long long tare_host_memory(unsigned threads, unsigned shared) { return tare::emu::machineBytes(threads, shared); }
