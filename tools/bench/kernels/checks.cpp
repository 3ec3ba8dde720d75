// Check work of one fidelity check: every row in f16 against rows near anchors in int4, in one run, taking turns (spec 6, performance.md). In: nothing. Out: a line
// per shape with microseconds, their ratio, and the ratio per row. Dense is the better of the check kernel over all rows and a GEMM of the same
// products whose tiles are only squared. The bits' way into the bias is the same on both sides and left out of both.
#include "kernels/cpu/kernels.h"
#include "peak.h"
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string.h>
#include <vector>

namespace {

struct Shape {
  const char *name;
  int64_t tokens, width, heads, rank, near; ///< near: evaluated rows
};

/// contract-lm on its reference document; MiniLM with the checks of the targets; the width of a 7B model.
constexpr Shape kShapes[] = {{"contract-lm, reference document", 2000, 128, 3, 64, 17}, {"MiniLM, K=3 R=384", 512, 384, 3, 384, 25}, {"width 4096, K=3 R=384", 512, 4096, 3, 384, 25}};

void squares(void *env, const float *tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  auto *sums = static_cast<float *>(env);
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += tile[i * 32 + j] * tile[i * 32 + j];
    sums[row + i] += sum;
  }
}

double best(const std::function<void()> &once) {
  double seconds = 1e9;
  for (int i = 0; i < 5; ++i) {
    double begin = threadSeconds();
    once();
    seconds = std::min(seconds, threadSeconds() - begin);
  }
  return seconds;
}

void run(const Shape &s) {
  const int64_t panels = (s.rank + 31) / 32, groups = (s.width + 31) / 32, steps = s.heads * panels * s.width;
  std::vector<float> a(s.tokens * s.width), scale(s.heads * panels * groups * 32, 0.01f), p(s.heads * panels * 32, 0.1f), tau(s.heads, 3.f), sums(s.tokens);
  std::vector<uint16_t> half(steps * 32);
  std::vector<uint8_t> nibbles(steps * 16);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(int(i * 7 % 23) - 11) / 16;
  for (size_t i = 0; i < half.size(); ++i) half[i] = uint16_t(0x2800 + i * 37 % 512); // small positive halves
  for (size_t i = 0; i < nibbles.size(); ++i) nibbles[i] = uint8_t(i * 73);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < s.near; ++i) rows.push_back(i < 2 ? i : (i - 2) / 3 * (s.tokens / ((s.near + 2) / 3)) + (i - 2) % 3 + 100);
  std::vector<uint32_t> bits(s.tokens), carried(1), last(1);
  tare_check_rows everyRow{nullptr, -1, s.tokens, carried.data(), last.data()}, nearRows{rows.data(), s.near, s.tokens, carried.data(), last.data()};
  tare_check check{&everyRow, half.data(), TARE_F16, nibbles.data(), TARE_I4, scale.data(), 32, p.data(), tau.data(), s.heads, s.rank, s.width};
  tare_check sparse = check;
  sparse.run = &nearRows;
  // The GEMM kernels take the rows of a chunk at once, and so do the checks inside of them.
  const int64_t chunk = TARE_CHECK_CHUNK(s.width);
  auto over = [&](const tare_check &c) {
    for (int64_t row = 0; row < s.tokens; row += chunk)
      tare_check_bits(&c, a.data(), s.width, row, std::min(chunk, s.tokens - row), bits.data() + row, row ? &bits[row - 1] : nullptr, 1);
  };
  double dense = 1e9, product = 1e9, near = 1e9;
  for (int round = 0; round < 15; ++round) {
    dense = std::min(dense, best([&] { over(check); }));
    product = std::min(product, best([&] { tare_gemm_f16(a.data(), s.width, half.data(), s.tokens, s.heads * panels * 32, s.width, 0, 1, squares, sums.data()); }));
    near = std::min(near, best([&] { over(sparse); }));
  }
  double better = std::min(dense, product);
  printf("%-34s dense f16 %9.1f us (GEMM %9.1f us), sparse int4 %8.1f us: ratio %6.1f; rows %lld and %lld, ratio per row %.2f\n", s.name, dense * 1e6, product * 1e6, near * 1e6, better / near,
         static_cast<long long>(s.tokens), static_cast<long long>(s.near), better / double(s.tokens) / (near / double(s.near)));
}

} // namespace

int main() {
  for (const Shape &s : kShapes) run(s);
  return 0;
}
