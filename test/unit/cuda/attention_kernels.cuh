// Instances of the attention templates: compiled by nvcc for every architecture (cubins_test.sh) and run on the emulator (attention_test.cpp), the same text.
// `mask` [batch][keys] is added to every score; causal masks come from the position.
#include "kernels/cuda/attention_f32.cuh"
#include "kernels/cuda/attention_mma.cuh"

namespace tare {

#define TARE_ATTENTION_F32(KERNEL, NAME, D, V)                                                                                                                              \
  KERNEL(128) NAME(global<const float> q, global<const float> k, global<const float> v, global<const float> mask, global<float> out, Attention a, bool causal) { \
    attention_f32<D, V>(q, k, v, out, a, [=](i64 b, i64, i64 query, i64 key) {                                                                                      \
      return causal && key > query + a.keys - a.queries ? -TARE_INF : mask.read(b * a.keys + key);                                                                  \
    });                                                                                                                                                              \
  }
TARE_ATTENTION_F32(TARE_KERNEL, attention_f32_32, 32, 32)
TARE_ATTENTION_F32(TARE_ROOMY_KERNEL, attention_f32_64, 64, 64)
TARE_ATTENTION_F32(TARE_ROOMY_KERNEL, attention_f32_24_40, 24, 40)
TARE_ATTENTION_F32(TARE_WIDE_KERNEL, attention_f32_128, 128, 128)

#define TARE_ATTENTION_MMA(KERNEL, NAME, D, T)                                                                                                                   \
  KERNEL(128) NAME(global<const T> q, global<const T> k, global<const T> v, global<const float> mask, global<T> out, Attention a, bool causal) {      \
    attention_mma<D, T>(q, k, v, out, a, causal, [=](i64 b, i64, i64, i64 key) { return mask.read(b * a.keys + key); });                                 \
  }
TARE_ATTENTION_MMA(TARE_ROOMY_KERNEL, attention_mma_f16_32, 32, f16)
TARE_ATTENTION_MMA(TARE_ROOMY_KERNEL, attention_mma_f16_64, 64, f16)
TARE_ATTENTION_MMA(TARE_ROOMY_KERNEL, attention_mma_bf16_64, 64, bf16)
TARE_ATTENTION_MMA(TARE_ROOMY_KERNEL, attention_mma_f16_80, 80, f16)
TARE_ATTENTION_MMA(TARE_WIDE_KERNEL, attention_mma_bf16_128, 128, bf16)

// f32 in memory, rounded on the way to shared memory: what generated text does.
#define TARE_ATTENTION_MMA_F32(KERNEL, NAME, D, T)                                                                     \
  KERNEL(128) NAME(global<const float> q, global<const float> k, global<const float> v, global<const float> mask,     \
                   global<float> out, Attention a, bool causal) {                                                     \
    attention_mma<D, T>(q, k, v, out, a, false, [=](i64 b, i64, i64 query, i64 key) {                                  \
      return causal && key > query + a.keys - a.queries ? -TARE_INF : mask.read(b * a.keys + key);                    \
    });                                                                                                               \
  }
TARE_ATTENTION_MMA_F32(TARE_ROOMY_KERNEL, attention_mma_f32_f16_32, 32, f16)
TARE_ATTENTION_MMA_F32(TARE_ROOMY_KERNEL, attention_mma_f32_f16_64, 64, f16)
TARE_ATTENTION_MMA_F32(TARE_ROOMY_KERNEL, attention_mma_f32_bf16_48, 48, bf16)
TARE_ATTENTION_MMA_F32(TARE_WIDE_KERNEL, attention_mma_f32_f16_128, 128, f16)

} // namespace tare
