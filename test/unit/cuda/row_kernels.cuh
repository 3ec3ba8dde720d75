// Instances of the row and pointwise templates: compiled by nvcc for every architecture (cubins_test.sh) and run on the emulator (rows_test.cpp), the same text.
#include "kernels/cuda/rows.cuh"

namespace tare {

TARE_KERNEL(128) residual_layer_norm(global<const float> x, global<const float> residual, global<const float> scale, global<const float> bias, global<float> sum, global<float> out, i64 rows,
                                     i64 columns) {
  layer_norm_rows<0>(rows, columns, 1e-5f, [=](i64 r, i64 j) { return x.read(r * columns + j) + residual.read(r * columns + j); },
                     [=](i64 r, i64 j, float v, float normed) {
                       sum.write(r * columns + j, v);
                       out.write(r * columns + j, normed * scale.read(j) + bias.read(j));
                     });
}
TARE_KERNEL(128) residual_layer_norm_384(global<const float> x, global<const float> residual, global<const float> scale, global<const float> bias, global<float> out, i64 rows) {
  layer_norm_rows<384>(rows, 384, 1e-12f, [=](i64 r, i64 j) { return x.read(r * 384 + j) + residual.read(r * 384 + j); },
                       [=](i64 r, i64 j, float, float normed) { out.write(r * 384 + j, normed * scale.read(j) + bias.read(j)); });
}
TARE_KERNEL(128) residual_rms_norm(global<const f16> x, global<const f16> residual, global<const float> scale, global<f16> out, i64 rows, i64 columns) {
  rms_norm_rows<0>(rows, columns, 1e-6f, [=](i64 r, i64 j) { return to_float(x.read(r * columns + j)) + to_float(residual.read(r * columns + j)); },
                   [=](i64 r, i64 j, float, float normed) { out.write(r * columns + j, from_float<f16>(normed * scale.read(j))); });
}
TARE_KERNEL(128) embedding_layer_norm(global<const i64> ids, global<const float> words, global<const float> positions, global<const float> scale, global<const float> bias, global<float> out,
                                      i64 rows, i64 sequence, i64 columns) {
  layer_norm_rows<0>(rows, columns, 1e-12f, [=](i64 r, i64 j) { return words.read(ids.read(r) * columns + j) + positions.read(r % sequence * columns + j); },
                     [=](i64 r, i64 j, float, float normed) { out.write(r * columns + j, normed * scale.read(j) + bias.read(j)); });
}
TARE_KERNEL(128) masked_softmax(global<const float> x, global<const float> mask, global<float> out, i64 rows, i64 columns) {
  softmax_rows<0>(rows, columns, false, [=](i64 r, i64 j) { return x.read(r * columns + j) + mask.read(j); }, [=](i64 r, i64 j, float, float y) { out.write(r * columns + j, y); });
}
TARE_KERNEL(128) log_softmax_64(global<const float> x, global<float> out, i64 rows) {
  softmax_rows<64>(rows, 64, true, [=](i64 r, i64 j) { return x.read(r * 64 + j); }, [=](i64 r, i64 j, float, float y) { out.write(r * 64 + j, y); });
}
/// x [rows][columns], pairs (j, j + columns/2) as Llama has them; row r is at position `past` + r.
TARE_KERNEL(128) rotary(global<float> x, global<const float> frequencies, i64 rows, i64 columns, i64 past) {
  const i64 half = columns / 2;
  pointwise(rows * half, [=](i64 i) {
    const i64 r = i / half, j = i % half;
    float x0 = x.read(r * columns + j), x1 = x.read(r * columns + j + half);
    rotate(x0, x1, past + r, frequencies.read(j));
    x.write(r * columns + j, x0);
    x.write(r * columns + j + half, x1);
  });
}
TARE_KERNEL(128) swiglu(global<const float> gate, global<const float> up, global<float> out, i64 count) {
  pointwise(count, [=](i64 i) { out.write(i, silu(gate.read(i)) * up.read(i)); });
}

} // namespace tare
