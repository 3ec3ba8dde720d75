/* The embedded bitcode of the microkernels, one module per ISA level. In: nothing; out: a table that ends with a null level. The level's CPU and features
 * are attributes of every function inside. Written by kernels/CMakeLists.txt. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
typedef struct { const char *level; const unsigned char *begin, *end; } tare_bitcode;
extern const tare_bitcode tare_kernel_bitcode[];
#ifdef __cplusplus
}
#endif
