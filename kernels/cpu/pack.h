/* Packing of activations into panels at run time. In: a strided k x n block; out: a panel [k][32], columns beyond n zero. */
#pragma once
#include "kernels/cpu/vector.h"

/* to[i*32 + j] = from[i*k_stride + j*n_stride] for i < k, j < n <= 32; fast when either stride is 1. */
void tare_pack_panel(float *to, const float *from, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n);
