// Row and pointwise templates on the emulator against double: residual + norms, embedding + norm, softmax with masks, rotary embedding at far positions.
#include "test/unit/cuda/row_kernels.cuh"
#include "test/unit/cuda/Launch.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tare;
using test::Buffer;
using test::run;

namespace {

std::vector<float> randomOf(size_t count, std::mt19937 &random, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> v(count);
  for (float &x : v) x = normal(random);
  return v;
}
emu::Geometry rowGrid(i64 rows, u32 shared = 0) { return {{static_cast<u32>((rows + 3) / 4), 1, 1}, {128, 1, 1}, shared}; }
emu::Geometry elementGrid(i64 count) { return {{static_cast<u32>((count + 127) / 128), 1, 1}, {128, 1, 1}, 0}; }

std::vector<double> layerNorm(const std::vector<double> &x, const float *scale, const float *bias, double epsilon) {
  double mean = 0, square = 0;
  for (double v : x) mean += v / x.size();
  for (double v : x) square += (v - mean) * (v - mean) / x.size();
  std::vector<double> y;
  for (size_t j = 0; j < x.size(); ++j) y.push_back((x[j] - mean) / std::sqrt(square + epsilon) * scale[j] + bias[j]);
  return y;
}

TEST(CudaRows, ResidualAndLayerNorm) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  for (auto [rows, columns] : {std::pair<i64, i64>{1, 1}, {5, 7}, {9, 128}, {4, 33}, {3, 384}}) {
    SCOPED_TRACE(testing::Message() << rows << "x" << columns);
    Buffer<float> x(randomOf(rows * columns, random, 3), "x"), residual(randomOf(rows * columns, random), "residual"), scale(randomOf(columns, random), "scale"), bias(randomOf(columns, random), "bias");
    Buffer<float> sum(rows * columns, "sum"), out(rows * columns, "out"), kept(rows * columns, "kept");
    auto o = run("residual_layer_norm", rowGrid(rows), [&, rows = rows, columns = columns] { residual_layer_norm(x, residual, scale, bias, sum, out, rows, columns); }, columns == 384);
    ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
    if (columns == 384) {
      test::print("residual_layer_norm", o);
      auto p = run("residual_layer_norm_384", rowGrid(rows, 4 * 384 * 4), [&, rows = rows] { residual_layer_norm_384(x, residual, scale, bias, kept, rows); });
      ASSERT_EQ(static_cast<int>(p.fault()), 0) << p.text();
    }
    for (i64 r = 0; r < rows; ++r) {
      std::vector<double> row;
      for (i64 j = 0; j < columns; ++j) row.push_back(static_cast<double>(x[r * columns + j]) + residual[r * columns + j]);
      auto y = layerNorm(row, scale.data, bias.data, 1e-5);
      auto z = layerNorm(row, scale.data, bias.data, 1e-12);
      for (i64 j = 0; j < columns; ++j) {
        ASSERT_NEAR(out[r * columns + j], y[j], 1e-5) << r << "," << j;
        ASSERT_NEAR(sum[r * columns + j], row[j], 1e-5);
        if (columns == 384) ASSERT_NEAR(kept[r * columns + j], z[j], 1e-5);
      }
    }
  }
}

TEST(CudaRows, ResidualAndRmsNormInHalf) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  const i64 rows = 6, columns = 96;
  std::vector<f16> hx, hr;
  for (float v : randomOf(rows * columns, random)) hx.push_back(from_float<f16>(v));
  for (float v : randomOf(rows * columns, random)) hr.push_back(from_float<f16>(v));
  Buffer<f16> x(hx, "x"), residual(hr, "residual"), out(rows * columns, "out");
  Buffer<float> scale(randomOf(columns, random), "scale");
  auto o = run("residual_rms_norm", rowGrid(rows), [&] { residual_rms_norm(x, residual, scale, out, rows, columns); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  for (i64 r = 0; r < rows; ++r) {
    double square = 0;
    auto value = [&](i64 j) { return static_cast<double>(to_float(x[r * columns + j])) + to_float(residual[r * columns + j]); };
    for (i64 j = 0; j < columns; ++j) square += value(j) * value(j) / columns;
    for (i64 j = 0; j < columns; ++j) ASSERT_NEAR(to_float(out[r * columns + j]), value(j) / std::sqrt(square + 1e-6) * scale[j], 3e-3);
  }
}

TEST(CudaRows, EmbeddingAndLayerNorm) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  const i64 batch = 2, sequence = 5, columns = 40, vocabulary = 11;
  std::vector<i64> ids;
  for (i64 i = 0; i < batch * sequence; ++i) ids.push_back(static_cast<i64>(random() % vocabulary));
  Buffer<i64> dids(ids, "ids");
  Buffer<float> words(randomOf(vocabulary * columns, random), "words"), positions(randomOf(sequence * columns, random), "positions"), scale(randomOf(columns, random), "scale"),
      bias(randomOf(columns, random), "bias"), out(batch * sequence * columns, "out");
  auto o = run("embedding_layer_norm", rowGrid(batch * sequence), [&] { embedding_layer_norm(dids, words, positions, scale, bias, out, batch * sequence, sequence, columns); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  for (i64 r = 0; r < batch * sequence; ++r) {
    std::vector<double> row;
    for (i64 j = 0; j < columns; ++j) row.push_back(static_cast<double>(words[ids[r] * columns + j]) + positions[r % sequence * columns + j]);
    auto y = layerNorm(row, scale.data, bias.data, 1e-12);
    for (i64 j = 0; j < columns; ++j) ASSERT_NEAR(out[r * columns + j], y[j], 1e-5);
  }
  dids[3] = vocabulary; // an id that the table does not have
  EXPECT_EQ(run("embedding_layer_norm", rowGrid(batch * sequence), [&] { embedding_layer_norm(dids, words, positions, scale, bias, out, batch * sequence, sequence, columns); }).fault(),
            emu::Fault::OutOfBounds);
}

TEST(CudaRows, SoftmaxWithMasks) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  const i64 rows = 7, columns = 70;
  auto values = randomOf(rows * columns, random, 20);
  std::vector<float> mask(columns, 0.0f);
  for (i64 j = 0; j < columns; j += 3) mask[j] = -INFINITY;
  for (i64 j = 0; j < columns; ++j) values[2 * columns + j] = j < 40 ? -INFINITY : values[2 * columns + j]; // whole lanes see -inf first
  for (i64 j = 0; j < columns; ++j) values[3 * columns + j] = -INFINITY;
  values[4 * columns + 10] = NAN;
  Buffer<float> x(values, "x"), dmask(mask, "mask"), out(rows * columns, "out");
  auto o = run("masked_softmax", rowGrid(rows), [&] { masked_softmax(x, dmask, out, rows, columns); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  for (i64 r = 0; r < rows; ++r) {
    double most = -INFINITY, sum = 0;
    auto value = [&](i64 j) { return static_cast<double>(values[r * columns + j]) + mask[j]; };
    for (i64 j = 0; j < columns; ++j) most = std::max(most, value(j));
    for (i64 j = 0; j < columns; ++j) sum += std::exp(value(j) - most);
    for (i64 j = 0; j < columns; ++j) {
      if (r == 3 || r == 4) ASSERT_TRUE(std::isnan(out[r * columns + j])) << r << "," << j;
      else ASSERT_NEAR(out[r * columns + j], std::exp(value(j) - most) / sum, 2e-6) << r << "," << j;
    }
  }
  Buffer<float> y(randomOf(3 * 64, random, 5), "x"), log(3 * 64, "out");
  auto p = run("log_softmax_64", rowGrid(3, 4 * 64 * 4), [&] { log_softmax_64(y, log, 3); });
  ASSERT_EQ(static_cast<int>(p.fault()), 0) << p.text();
  for (i64 r = 0; r < 3; ++r) {
    double sum = 0;
    for (i64 j = 0; j < 64; ++j) sum += std::exp(static_cast<double>(y[r * 64 + j]));
    for (i64 j = 0; j < 64; ++j) ASSERT_NEAR(log[r * 64 + j], y[r * 64 + j] - std::log(sum), 5e-6);
  }
}

TEST(CudaRows, RotaryEmbeddingFarOut) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  const i64 rows = 5, columns = 32;
  std::vector<float> frequencies;
  for (int j = 0; j < 16; ++j) frequencies.push_back(static_cast<float>(std::pow(10000.0, -2.0 * j / columns)));
  for (i64 past : {0, 4095, 131071}) {
    auto values = randomOf(rows * columns, random);
    Buffer<float> x(values, "x"), f(frequencies, "frequencies");
    auto o = run("rotary", elementGrid(rows * columns / 2), [&] { rotary(x, f, rows, columns, past); });
    ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
    for (i64 r = 0; r < rows; ++r)
      for (i64 j = 0; j < columns / 2; ++j) {
        // The angle is a product in f32 by definition (as exporters write it); its sine and cosine are exact to rounding.
        double angle = static_cast<float>(past + r) * frequencies[j], x0 = values[r * columns + j], x1 = values[r * columns + j + 16];
        ASSERT_NEAR(x[r * columns + j], x0 * std::cos(angle) - x1 * std::sin(angle), 1e-6);
        ASSERT_NEAR(x[r * columns + j + 16], x0 * std::sin(angle) + x1 * std::cos(angle), 1e-6);
      }
  }
}

TEST(CudaRows, GatedActivation) {
  std::mt19937 random(static_cast<unsigned>(test::seed()));
  Buffer<float> gate(randomOf(1000, random, 10), "gate"), up(randomOf(1000, random), "up"), out(1000, "out");
  auto o = run("swiglu", elementGrid(1000), [&] { swiglu(gate, up, out, 1000); });
  ASSERT_EQ(static_cast<int>(o.fault()), 0) << o.text();
  for (int i = 0; i < 1000; ++i) ASSERT_NEAR(out[i], gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i], 1e-5);
}

} // namespace
