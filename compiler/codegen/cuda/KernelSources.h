// The texts of kernels/cuda (and the scalar math of kernels/cpu, and the code ABI) inside the compiler, by path in the
// tree; embedded by compiler/codegen/cuda/CMakeLists.txt.
#pragma once

extern "C" {
struct KernelSource {
  const char *name;
  const unsigned char *begin, *end;
};
extern const KernelSource tare_kernel_sources[]; // ends with a null name
}
