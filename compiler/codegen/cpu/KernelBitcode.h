// The embedded bitcode of the microkernels, one module per ISA level. In: nothing; out: a table that ends with a null level. The level's CPU and features
// are attributes of every function inside. The table itself is written by kernels/CMakeLists.txt, with this layout.
#pragma once

namespace tare {
struct KernelBitcode {
  const char *level;
  const unsigned char *begin, *end;
};
extern "C" const KernelBitcode tare_kernel_bitcode[];
} // namespace tare
