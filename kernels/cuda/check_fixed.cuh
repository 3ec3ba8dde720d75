// Integer prototypes by tensor cores, part of check.cuh: the CPU's arithmetic (kernels/cpu/check_fixed.h). A row is held as 16-bit fixed point per group of the
// scales, q = round(x 32512 / max), in two bytes: mma.m16n8k32 multiplies both with the prototypes' integers, exactly, so that only this rounding (2^-16 of the
// group's largest value) and the f32 sum over groups remain. In: eight rows of a block, panels of int4 or int8. Out: each panel's sum of squared differences.
// Must hold: a row's sums do not depend on its neighbours; a row with a value that is not finite gives NaN. 128 threads.
//
// The prototypes are the 16 rows of a fragment and the rows of h its 8 columns: most tiles list one or two rows, and eight cost half of sixteen. A warp's step is
// 32 values of d. Steps lie in shared memory as in the panel, 16 bytes of columns each, brought by cp.async; one transposing ldmatrix hands lane (g, t) = (lane / 4,
// lane % 4) the bytes 2g and 2g + 1 of the steps 8t .. 8t + 7: columns 2g, 2g + 1 and, in the high nibbles, 2g + 16, 2g + 17. Any order of d will do as long as rows
// have the same, so the eight values that lane (g, t) quantises of row g lie side by side.
#pragma once
#include "kernels/cuda/reduce.cuh"

namespace tare {

/// Sizes and places in shared memory, from byte 0 on: steps of panels in flight, per warp; then a chunk of quantised rows, its units and sums.
template <int D, int Group> struct FixedShape {
  /// Larger groups would overflow what fixed_total takes, or need more registers than the group of a row may have.
  static constexpr bool kPossible = Group >= 1 && Group <= 128;
  static constexpr int kRows = 8, kWarps = 4, kWarpBytes = 2560;
  static constexpr int kGroups = kPossible ? (D + Group - 1) / Group : 0, kGroupSteps = kPossible ? (Group + 31) / 32 : 1, kSteps = kGroups * kGroupSteps;
  static constexpr int kMostGroups = kGroups < 16 / kGroupSteps ? kGroups : 16 / kGroupSteps; // of a chunk
  static constexpr u32 kWords = kWarps * kWarpBytes, kUnits = kWords + kMostGroups * kGroupSteps * 512;
  static constexpr u32 kHighs = kUnits + kMostGroups * kRows * 4, kLows = kHighs + kMostGroups * kRows * 8;
  static constexpr u32 kBytes = kPossible ? kLows + kMostGroups * kRows * 8 : 0;
  TARE_DEVICE static shared<u32> words() { return shared_at<u32>(kWords, kMostGroups * kGroupSteps * 128); }        // [step][lane][2 of high bytes, 2 of low]
  TARE_DEVICE static shared<float> units() { return shared_at<float>(kUnits, kMostGroups * kRows); }               // [group][row]
  TARE_DEVICE static shared<int> highs() { return shared_at<int>(kHighs, kMostGroups * kRows * 2); }               // [group][pair of rows][twice], as a fragment
  TARE_DEVICE static shared<int> lows() { return shared_at<int>(kLows, kMostGroups * kRows * 2); }
};

/// Sums are counted on top of a float's bits: 1.5 2^23 + n has the bits of 1.5 2^23 plus n, for n in +-2^22, and 1.5 2^31 + 256 n those of 1.5 2^31 plus n. So
/// sums of low and of high bytes are floats as they are, where a conversion would run at a quarter of the rate of an addition.
constexpr int kLowBits = 0x4b400000, kHighBits = 0x4f400000;
constexpr float kLowOffset = 12582912.0f, kBothOffsets = 3221225472.0f + 12582912.0f; // 1.5 2^23; 1.5 2^31 + 1.5 2^23, exact
/// 256 high + low, rounded once.
TARE_DEVICE float fixed_total(int high, int low) { return (float_of(high) - kBothOffsets) + float_of(low); }

/// Quantises groups [first, first + count) of eight rows into shared memory; lane (g, t) works for row g, which is `row` of h, or none when negative. Warps share
/// the groups. `offset` is what the prototypes' integers lie above their values.
template <class Shape, class H> TARE_DEVICE void fix_rows(global<const H> h, i64 row, int first, int count, int offset) {
  using F = typename Shape::Fixed;
  constexpr int D = Shape::kWidth, kGroup = Shape::kGroup, kSteps = F::kGroupSteps, kVector = 16 / sizeof(H);
  const int lane = static_cast<int>(lane_index()), from = lane % 4 * 8;
#pragma unroll 1
  for (int i = static_cast<int>(thread_index() / 32); i < count; i += F::kWarps) {
    float v[kSteps][8];
    int most = 0; // sizes in the order of their bits: infinity and NaN are the largest
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int at = s * 32 + from, d = (first + i) * kGroup + at; // of the group; of the row
      if constexpr (D % 8 == 0 && kGroup % 8 == 0) {
#pragma unroll
        for (int e = 0; e < 8; e += kVector) {
          vec<H, kVector> part = {};
          const bool inside = row >= 0 && at < kGroup && d < D;
          if (inside) part = h.template readVector<kVector>(row * D + d + e);
#pragma unroll
          for (int f = 0; f < kVector; ++f) v[s][e + f] = inside ? to_float(part[f]) : 0.0f;
        }
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) v[s][e] = row >= 0 && at + e < kGroup && d + e < D ? to_float(h.read(row * D + d + e)) : 0.0f;
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int size = bits_of(v[s][e]) & 0x7fffffff;
        most = most > size ? most : size;
      }
    }
#pragma unroll
    for (u32 m = 1; m < 4; m *= 2) {
      const int other = shuffle_xor(most, m);
      most = most > other ? most : other;
    }
    const bool finite = most < 0x7f800000;
    const float size = float_of(most), inverse = finite && size > 1e-30f ? 32512.0f / size : 0.0f;
    int sum = 0;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      u32 b[8]; // kLowBits + q: the low byte is q's; with 128 more the next one is that of (q + 128) >> 8
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        b[e] = static_cast<u32>(bits_of(multiply32(v[s][e], inverse) + kLowOffset));
        sum += static_cast<int>(b[e] - static_cast<u32>(kLowBits));
      }
      vec<u32, 4> word;
#pragma unroll
      for (int e = 0; e < 8; e += 4) {
        word[2 + e / 4] = byte_permute(byte_permute(b[e], b[e + 1], 0x0040), byte_permute(b[e + 2], b[e + 3], 0x0040), 0x5410);
        word[e / 4] = byte_permute(byte_permute(b[e] + 128, b[e + 1] + 128, 0x0051), byte_permute(b[e + 2] + 128, b[e + 3] + 128, 0x0051), 0x5410);
      }
      F::words().template writeVector<4>(((i * kSteps + s) * 32 + lane) * 4, word);
    }
#pragma unroll
    for (u32 m = 1; m < 4; m *= 2) sum += shuffle_xor(sum, m);
    const int above = offset * sum, high = (above + 128) >> 8; // what the offset adds goes ahead, as 256 high + low again
    if (lane % 4 == 0) F::units().write(i * F::kRows + lane / 4, finite ? size / 32512.0f : TARE_NAN);
    if (lane % 2 == 0) { // once for each half of a fragment
      const int at = (i * F::kRows + lane / 8 * 2) * 2 + lane / 4 % 2 + lane % 4;
      F::highs().write(at, kHighBits - high), F::lows().write(at, kLowBits - (above - high * 256));
    }
  }
}

/// A warp's way along panels item, item + 4, ... < end: the next step that goes to shared memory, with the scales of its group.
template <class Shape, class Weights> struct FixedSteps {
  using F = typename Shape::Fixed;
  static constexpr int kHalves = Weights::kStepBytes / 16, kScalesAt = 16 * Weights::kStepBytes, kStage = kScalesAt + 64; // in words of two bytes
  static constexpr int kStages = kHalves == 1 ? 4 : 2;
  static_assert(kStages * kStage * 2 <= F::kWarpBytes);
  const Weights &weights;
  int end, item; // the next one
  int step = 0, d = static_cast<int>(lane_index());
  i64 from = (static_cast<i64>(item) * Shape::kWidth + d) * Weights::kStepBytes, scales = static_cast<i64>(item) * F::kGroups * 32;
  u32 write = 0, read = 0; // stages

  TARE_DEVICE static shared<u16> memory() { return shared_at<u16>(thread_index() / 32 * F::kWarpBytes, F::kWarpBytes / 2); }
  TARE_DEVICE static shared<float> scalesOf(u32 stage) { return shared_at<float>(thread_index() / 32 * F::kWarpBytes + (stage * kStage + kScalesAt) * 2, 32); }
  /// Steps 8t + 2i and 8t + 2i + 1 are rows 2t and 2t + 1 of matrix i: so the rows of a matrix lie in different banks.
  TARE_DEVICE static u32 place(u32 step) { return ((step & 24) + ((step + step / 8 * 2) & 7)) * 8; }

  /// Lets the next step fly; behind the last panel nothing but zeros.
  TARE_DEVICE void fetch() {
    const u32 lane = lane_index();
    const bool more = item < end;
#pragma unroll
    for (int half = 0; half < kHalves; ++half) // what lies behind the group meets zeros of the row
      cp_async16(memory(), write * kStage + half * 256 + place(lane), weights.q, from + half * 16, more && d < Shape::kWidth ? 16 : 0);
    if (lane < 8) cp_async16(scalesOf(write), lane * 4, weights.scale, scales + lane * 4, more ? 4 : 0);
    cp_async_commit();
    write = (write + 1) % kStages;
    const bool groupEnds = ++step % F::kGroupSteps == 0;
    const int by = groupEnds ? Shape::kGroup - (F::kGroupSteps - 1) * 32 : 32;
    d += by, from += by * Weights::kStepBytes, scales += groupEnds ? 32 : 0;
    if (step < F::kSteps) return;
    d = static_cast<int>(lane), item += F::kWarps, step = 0;
    from = (static_cast<i64>(item) * Shape::kWidth + d) * Weights::kStepBytes, scales = static_cast<i64>(item) * F::kGroups * 32;
  }
  TARE_DEVICE void begin() {
    sync_warp(); // nobody reads the stages any more
#pragma unroll
    for (int s = 0; s + 1 < kStages; ++s) fetch();
  }
  /// The oldest step as fragments: a[m] has columns 16 m + 2g (its rows 0 to 7) and 16 m + 2g + 1 (8 to 15); scale[m] has those of its group.
  TARE_DEVICE void take(u32 (&a)[2][4], vec<float, 2> (&scale)[2]) {
    cp_async_wait<kStages - 2>();
    sync_warp();
    const u32 lane = lane_index(), row = lane % 8;
    u32 r[kHalves][4];
#pragma unroll
    for (int half = 0; half < kHalves; ++half) ldmatrix_transposed(r[half], memory(), read * kStage + half * 256 + place(row / 2 * 8 + lane / 8 * 2 + row % 2));
#pragma unroll
    for (int m = 0; m < 2; ++m) scale[m] = scalesOf(read).template readVector<2>(16 * m + lane / 4 * 2);
    read = (read + 1) % kStages;
    fetch();
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
#pragma unroll
      for (int i = 0; i < 4; ++i) { // 0, 1: even and odd column of the first four steps; 2, 3: of the next four
        const u32 bytes = byte_permute(r[half][i / 2 * 2], r[half][i / 2 * 2 + 1], i % 2 ? 0x7531 : 0x6420);
        if constexpr (kHalves == 2) a[half][i] = bytes;
        else a[0][i] = bytes & 0x0f0f0f0fu, a[1][i] = bytes >> 4 & 0x0f0f0f0fu;
      }
  }
};

/// One group, the one at `i` of the chunk: both bytes of eight rows times the panel's 32 columns, into acc[m][e] of column 16 m + 2g + e / 2, row 2t + e % 2.
template <class Shape, class Weights> TARE_DEVICE void fixed_group(FixedSteps<Shape, Weights> &steps, int i, float (&acc)[2][4]) {
  using F = typename Shape::Fixed;
  const int t = static_cast<int>(lane_index() % 4);
  const vec<int, 4> highs = F::highs().template readVector<4>((i * 4 + t) * 4), lows = F::lows().template readVector<4>((i * 4 + t) * 4);
  int high[2][4], low[2][4];
#pragma unroll
  for (int e = 0; e < 8; ++e) high[e / 4][e % 4] = highs[e % 4], low[e / 4][e % 4] = lows[e % 4];
  vec<float, 2> scale[2];
#pragma unroll
  for (int s = 0; s < F::kGroupSteps; ++s) {
    u32 a[2][4];
    steps.take(a, scale);
    const vec<u32, 4> b = F::words().template readVector<4>(((i * F::kGroupSteps + s) * 32 + lane_index()) * 4);
    const u32 highBytes[2] = {b[0], b[1]}, lowBytes[2] = {b[2], b[3]};
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      mma_m16n8k32<typename Weights::Integer>(high[m], a[m], highBytes, high[m]);
      mma_m16n8k32<typename Weights::Integer>(low[m], a[m], lowBytes, low[m]);
    }
  }
  const vec<float, 2> units = F::units().template readVector<2>(i * F::kRows + 2 * t);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    acc[e / 4][e % 4] = fma32(fixed_total(high[e / 4][e % 4], low[e / 4][e % 4]), scale[e / 4][e / 2 % 2] * units[e % 2], acc[e / 4][e % 4]);
}

/// Stage 4 for eight rows: write(r, item, squares) once for each row of the block and each panel item in [first, end). `row` as in fix_rows. All threads of the
/// block; begins with a barrier.
template <class Shape, class H, class Weights, class Write>
TARE_DEVICE void fixed_squares(global<const H> h, i64 row, const Weights &weights, global<const float> p, int first, int end, Write write) {
  using F = typename Shape::Fixed;
  constexpr bool kWhole = F::kGroups <= F::kMostGroups; // quantised once for all panels
  const int warp = static_cast<int>(thread_index() / 32);
  const u32 g = lane_index() / 4, t = lane_index() % 4;
  FixedSteps<Shape, Weights> steps{weights, end, first + warp};
  steps.begin();
#pragma unroll 1
  for (int base = first; base < end; base += F::kWarps) {
    const int item = base + warp;
    float acc[2][4] = {};
#pragma unroll 1
    for (int chunk = 0; chunk < F::kGroups; chunk += F::kMostGroups) {
      const int count = F::kGroups - chunk < F::kMostGroups ? F::kGroups - chunk : F::kMostGroups;
      if (!kWhole || base == first) {
        sync_threads();
        fix_rows<Shape>(h, row, chunk, count, Weights::kOffset);
        sync_threads();
      }
      if (item < end)
#pragma unroll 1
        for (int i = 0; i < count; ++i) fixed_group<Shape>(steps, i, acc);
    }
    if (item >= end) continue;
    float squares[2] = {};
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const vec<float, 2> origin = p.template readVector<2>(static_cast<i64>(item) * 32 + 16 * m + 2 * g);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float z = acc[m][i] - origin[i / 2];
        squares[i % 2] = fma32(z, z, squares[i % 2]);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      for (u32 m = 4; m < 32; m *= 2) squares[r] += shuffle_xor(squares[r], m);
      if (g == 0) write(static_cast<int>(2 * t) + r, item, squares[r]);
    }
  }
  cp_async_wait<0>(); // zeros
}

} // namespace tare
