// The small engine of TestEngine.h with CUDA launches of test/unit/runtime/cuda_kernels.cu. In: which images, CPU code or not, changes to the plan. Out: a file. The images are texts
// that only the fake driver takes.
#pragma once
#include "test/support/TestEngine.h"

namespace tare::test {

/// Images by architecture; "FAKE sm_90 ..." stands for a cubin, PTX is what a PTX text begins with.
inline std::string fakeImage(const std::string &arch) {
  if (arch[0] == 's') return "FAKE " + arch + " scale keep append sum windows";
  return "// scale keep append sum windows\n.version " + std::string(arch == "compute_90" ? "8.4" : "7.4") + "\n.target sm_" + arch.substr(8) + "\n"; // of CUDA 12.4 and 11.4
}

inline void writeCudaEngine(const std::string &path, const std::vector<std::string> &archs = {"sm_90", "compute_80"}, bool cpu = false, const std::function<void(fb::PlanT &)> &more = {}) {
  EngineChanges changes;
  changes.cpu = cpu;
  std::vector<uint64_t> offsets, sizes;
  for (auto &arch : archs) {
    std::string image = fakeImage(arch);
    offsets.push_back(changes.cudaModule.size()), sizes.push_back(image.size() + 1);
    changes.cudaModule += image + std::string(64 - image.size() % 64, '\0');
  }
  changes.plan = [&](fb::PlanT &plan) {
    auto one = std::make_unique<fb::DimProgramT>();
    one->code = {kPush, 1}, one->text = "1";
    plan.dims.push_back(std::move(one));
    const auto last = static_cast<uint32_t>(plan.dims.size() - 1);
    fb::CudaT &cuda = *plan.cuda;
    cuda.kernels.clear(), cuda.launches.clear(), cuda.images.clear();
    using Kind = fb::CudaArgumentKind;
    auto add = [&](const char *name, uint32_t step, uint32_t shared, std::vector<fb::CudaArgument> arguments) {
      auto kernel = std::make_unique<fb::CudaKernelT>();
      kernel->name = name, kernel->threads = 128, kernel->shared_bytes = shared;
      auto launch = std::make_unique<fb::CudaLaunchT>();
      launch->step = step, launch->kernel = static_cast<uint32_t>(cuda.kernels.size()), launch->grid = {0, last, last}, launch->arguments = std::move(arguments);
      cuda.kernels.push_back(std::move(kernel)), cuda.launches.push_back(std::move(launch));
    };
    add("scale", 0, 0, {{Kind::Buffer, 0}, {Kind::Buffer, 1}, {Kind::Buffer, 2}, {Kind::Dim, 0}, {Kind::Dim, 1}});
    add("keep", 1, 0, {{Kind::Buffer, 0}, {Kind::Buffer, 3}, {Kind::Dim, 2}, {Kind::Dim, 3}, {Kind::Dim, 4}});
    add("append", 1, 60 << 10, {{Kind::Buffer, 1}, {Kind::Buffer, 2}, {Kind::Buffer, 3}, {Kind::Dim, 1}, {Kind::Dim, 2}, {Kind::Dim, 4}});
    add("sum", 2, 1024, {{Kind::Buffer, 0}, {Kind::Buffer, 1}, {Kind::Buffer, 2}, {Kind::Buffer, 3}, {Kind::Dim, 1}, {Kind::Dim, 2}, {Kind::Dim, 4}, {Kind::Fault, 0}, {Kind::Step, 0}});
    if (more) more(plan);
    uint32_t section = cpu ? 3 : 2; // weights, checksums, code
    for (size_t i = 0; i < archs.size(); ++i) {
      auto image = std::make_unique<fb::CudaImageT>();
      image->arch = archs[i], image->section = section;
      image->offsets.assign(cuda.kernels.size(), offsets[i]), image->sizes.assign(cuda.kernels.size(), sizes[i]);
      cuda.images.push_back(std::move(image));
    }
  };
  writeTestEngine(path, changes);
}

} // namespace tare::test
