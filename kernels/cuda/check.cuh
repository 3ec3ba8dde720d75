// The FFN-up GEMM with its fidelity check fused (spec 6): the bias of row h becomes bias + sum_k b_k E_k with b_k = (|| W_k h - p_k || < tau_k). In: rows h, anchors,
// prototypes as int4 panels (sparse form) or float panels (dense form). Out: the FFN's rows, through the epilogue. Stages of a block, in one launch:
//   window test -> compaction of rows by ballot -> int4 unpacked in registers -> distance reduction -> bits in shared memory -> bias of the epilogue.
// Rows outside of every window have the bits of the last evaluated row before them; the block evaluates again the one row that carries into its tile, so no block
// waits for another. Where evaluating a row costs too much for that (the printer's rule), a launch of its own evaluates every listed row once and the GEMM only carries. Panels are kernels/cpu/kernels.h's: [K][ceil(R/32)][D][32], int4 as 16 bytes per step (column c low in byte c, c + 16 high, value + 8), scales
// [K][ceil(R/32)][ceil(D/group)][32], p [K][ceil(R/32)][32], all zero padded.
#pragma once
#include "kernels/cuda/check_fixed.cuh"
#include "kernels/cuda/check_window.cuh"
#include "kernels/cuda/gemm_mma.cuh"
#include "kernels/cuda/gemm_tf32.cuh"

namespace tare {

/// K heads of rank R over rows of width D; scales of integers are per `Group` values (0: no integers); `Window` token steps before each anchor are evaluated.
template <int K, int R, int D, int Group = 32, int Window = 3> struct CheckShape {
  static_assert(K >= 1 && K <= 32);
  using Fixed = FixedShape<D, Group>;
  static constexpr int kHeads = K, kRank = R, kWidth = D, kGroup = Group, kWindow = Window, kPanels = (R + 31) / 32;
  static constexpr int kRows = 64, kChunk = 8; // rows of a tile; rows whose distances are in shared memory at once
  static constexpr u32 kList = kRows + 1;
  /// Shared memory of the stages: fixed-point rows, distances by panel, list of rows, their bits; then the bits of the tile's rows, which outlive the stages.
  static constexpr u32 kDistanceAt = Fixed::kBytes, kListAt = kDistanceAt + kChunk * kHeads * kPanels * 4;
  static constexpr u32 kScratchBytes = kListAt + 2 * kList * 4 + 16;
};

/// v - bias for 0 <= v < 2^23 without a conversion, which a GPU does at a quarter of the rate of an addition: v in the
/// mantissa of 2^23, minus 2^23 + bias. Exact.
TARE_DEVICE float small_float(u32 v, float bias) { return float_of(static_cast<int32_t>(0x4b000000u | v)) - (8388608.0f + bias); }

/// Prototypes in int4: 16 bytes per d, all 32 columns of it. On tensor cores (check_fixed.cuh) where the groups of the scales let them, else decoded to f32.
template <class Shape> struct Int4Panels {
  using Integer = u8;
  static constexpr bool kFixed = Shape::Fixed::kPossible;
  static constexpr int kStepBytes = 16, kOffset = 8;
  global<const u8> q;
  global<const float> scale;
  TARE_DEVICE void load(float (&w)[32], i64 panel, int d) const {
    const vec<u8, 16> bytes = q.template readVector<16>((panel * Shape::kWidth + d) * 16);
    const i64 at = (panel * ((Shape::kWidth + Shape::kGroup - 1) / Shape::kGroup) + d / Shape::kGroup) * 32;
#pragma unroll
    for (int c = 0; c < 16; c += 4) {
      const vec<float, 4> low = scale.template readVector<4>(at + c), high = scale.template readVector<4>(at + 16 + c);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        w[c + e] = small_float(bytes[c + e] & 15u, 8.0f) * low[e];
        w[16 + c + e] = small_float(bytes[c + e] >> 4, 8.0f) * high[e];
      }
    }
  }
};
/// Prototypes in int8: 32 bytes per d, scales as for int4.
template <class Shape> struct Int8Panels {
  using Integer = signed char;
  static constexpr bool kFixed = Shape::Fixed::kPossible;
  static constexpr int kStepBytes = 32, kOffset = 0;
  global<const signed char> q;
  global<const float> scale;
  TARE_DEVICE void load(float (&w)[32], i64 panel, int d) const {
    const i64 at = (panel * ((Shape::kWidth + Shape::kGroup - 1) / Shape::kGroup) + d / Shape::kGroup) * 32;
#pragma unroll
    for (int c = 0; c < 32; c += 16) {
      const vec<signed char, 16> bytes = q.template readVector<16>((panel * Shape::kWidth + d) * 32 + c);
#pragma unroll
      for (int e = 0; e < 16; e += 4) {
        const vec<float, 4> s = scale.template readVector<4>(at + c + e);
#pragma unroll
        for (int f = 0; f < 4; ++f) w[c + e + f] = small_float(static_cast<u8>(bytes[e + f]) ^ 128u, 128.0f) * s[f];
      }
    }
  }
};
/// Prototypes as stored in the model: the dense form, or a sparse one without integers.
template <class Shape, class W> struct FloatPanels {
  static constexpr bool kFixed = false;
  global<const W> w;
  TARE_DEVICE void load(float (&to)[32], i64 panel, int d) const {
#pragma unroll
    for (int c = 0; c < 32; c += 4) {
      const vec<W, 4> part = w.template readVector<4>((panel * Shape::kWidth + d) * 32 + c);
#pragma unroll
      for (int e = 0; e < 4; ++e) to[c + e] = to_float(part[e]);
    }
  }
};

/// Sums acc[c] over all lanes and leaves lane c with column c: 31 shuffles instead of 160.
template <int M = 16> TARE_DEVICE void butterfly(float (&acc)[32]) {
  const bool upper = lane_index() & M;
#pragma unroll
  for (int c = 0; c < M; ++c) {
    const float keep = upper ? acc[c + M] : acc[c], give = upper ? acc[c] : acc[c + M];
    acc[c] = keep + shuffle_xor(give, M);
  }
  if constexpr (M > 1) butterfly<M / 2>(acc);
}

/// Stage 4 in f32: squares of one panel's 32 differences, summed, for `Rows` rows. Each lane multiplies its share of D into all 32
/// columns; a butterfly then leaves lane c with column c. A row's sum has one order, whatever other rows it is taken with:
/// evaluated again elsewhere it has the same bits.
template <class Shape, int Rows, class H, class Weights>
TARE_DEVICE void panel_squares(global<const H> h, const i64 (&rows)[Rows], const Weights &weights, global<const float> p, i64 panel,
                               float (&squares)[Rows]) {
  float acc[Rows][32] = {};
  for (int d = static_cast<int>(lane_index()); d < Shape::kWidth; d += 32) {
    float w[32];
    weights.load(w, panel, d);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float x = to_float(h.read(rows[r] * Shape::kWidth + d));
#pragma unroll
      for (int c = 0; c < 32; ++c) acc[r][c] = fma32(x, w[c], acc[r][c]);
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    butterfly(acc[r]);
    const float z = acc[r][0] - p.read(panel * 32 + lane_index());
    squares[r] = warp_sum(z * z);
  }
}

/// Stage 5, one warp per row: the word of bits. `squares(item)` is the sum of one panel's squares. Lanes take every 32nd
/// panel of a head, so the order of the sum is one for both forms of the check.
template <class Shape, class Squares> TARE_DEVICE u32 word_of(global<const float> tau, Squares squares) {
  u32 word = 0;
#pragma unroll 1
  for (int head = 0; head < Shape::kHeads; ++head) {
    float sum = 0;
    for (int panel = static_cast<int>(lane_index()); panel < Shape::kPanels; panel += 32) sum += squares(head * Shape::kPanels + panel);
    word |= static_cast<u32>(sqrt32(warp_sum(sum)) < tau.read(head)) << head;
  }
  return word;
}

/// Stages 3 to 5 in the block that needs the bits: bits.write(i, word) for list entry i in [0, count).
template <class Shape, class H, class Weights>
TARE_DEVICE void evaluate_rows(global<const H> h, shared<int> list, int count, i64 base, const Weights &weights, global<const float> p,
                               global<const float> tau, shared<u32> bits) {
  constexpr int kItems = Shape::kHeads * Shape::kPanels;
  const shared<float> distance = shared_at<float>(Shape::kDistanceAt, Shape::kChunk * kItems);
  const int warp = static_cast<int>(thread_index() / 32);
  for (int start = 0; start < count; start += Shape::kChunk) {
    const int rows = count - start < Shape::kChunk ? count - start : Shape::kChunk;
    if constexpr (Weights::kFixed) {
      const int mine = static_cast<int>(lane_index() / 4);
      fixed_squares<Shape>(h, mine < rows ? base + list.read(start + mine) : -1, weights, p, 0, kItems, [&](int r, int item, float squares) {
        if (r < rows) distance.write(r * kItems + item, squares);
      });
    } else {
      for (int item = warp; item < kItems; item += 4)
        for (int r = 0; r < rows; r += 2) {
          const int second = r + 1 < rows ? r + 1 : r;
          const i64 pair[2] = {base + list.read(start + r), base + list.read(start + second)};
          float squares[2];
          panel_squares<Shape>(h, pair, weights, p, item, squares);
          if (lane_index() == 0) {
            distance.write(r * kItems + item, squares[0]);
            if (second != r) distance.write(second * kItems + item, squares[1]);
          }
        }
    }
    sync_threads();
    for (int r = warp; r < rows; r += 4) {
      const u32 word = word_of<Shape>(tau, [&](int item) { return distance.read(r * kItems + item); });
      if (lane_index() == 0) bits.write(start + r, word);
    }
    sync_threads();
  }
}

/// The split form's first launch, stages 3 and 4 of every evaluated row, once: distances[i][item] for the i-th listed row (every row without anchors). Any number
/// of blocks, each of which takes four panels, one per warp, of a few rows; neighbouring blocks take other rows of the same panels.
template <class Shape, class H, class Weights, class Row>
TARE_DEVICE void float_distances(global<const H> h, i64 count, Row row, const Weights &weights, global<const float> p, global<float> distances) {
  constexpr int kRows = 4; // so that a decoded weight serves four products
  constexpr i64 kItems = Shape::kHeads * Shape::kPanels, kFours = (kItems + 3) / 4;
  const i64 chunks = (count + kRows - 1) / kRows;
  for (i64 unit = block_index_x(); unit < chunks * kFours; unit += grid_size_x()) {
    const i64 item = unit / chunks * 4 + thread_index() / 32, first = unit % chunks * kRows;
    if (item >= kItems) continue;
    i64 taken[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) taken[r] = row(first + r < count ? first + r : count - 1); // behind the last one: the last one again
    float squares[kRows];
    panel_squares<Shape>(h, taken, weights, p, item, squares);
    if (lane_index() != 0) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (first + r < count) distances.write((first + r) * kItems + item, squares[r]);
  }
}
template <class Shape, class H, class Weights, class Row>
TARE_DEVICE void fixed_distances(global<const H> h, i64 count, Row row, const Weights &weights, global<const float> p, global<float> distances) {
  constexpr int kRows = Shape::Fixed::kRows, kItems = Shape::kHeads * Shape::kPanels;
  const i64 chunks = (count + kRows - 1) / kRows;
  for (i64 unit = block_index_x(); unit < chunks * ((kItems + 3) / 4); unit += grid_size_x()) {
    const i64 first = unit % chunks * kRows, mine = first + lane_index() / 4;
    const int item = static_cast<int>(unit / chunks) * 4, end = item + 4 < kItems ? item + 4 : kItems;
    fixed_squares<Shape>(h, mine < count ? row(mine) : -1, weights, p, item, end, [&](int r, int i, float squares) {
      if (first + r < count) distances.write((first + r) * kItems + i, squares);
    });
  }
}
template <class Shape, class H, class Sparse, class Dense>
TARE_DEVICE void check_distances(global<const H> h, i64 rows, const ListedRun &run, const Sparse &sparse, const Dense &dense,
                                 global<const float> p, global<float> distances) {
  const auto listed = [&](i64 i) { return run.rows.read(i); };
  if (run.dense()) float_distances<Shape>(h, rows, [](i64 i) { return i; }, dense, p, distances);
  else if constexpr (Sparse::kFixed) fixed_distances<Shape>(h, run.count, listed, sparse, p, distances);
  else float_distances<Shape>(h, run.count, listed, sparse, p, distances);
}
/// And what the blocks of its GEMM do instead: stage 5 alone.
template <class Shape>
TARE_DEVICE void carry_rows(shared<int> list, int count, i64 base, const ListedRun &run, global<const float> distances, global<const float> tau,
                            shared<u32> bits) {
  constexpr i64 kItems = Shape::kHeads * Shape::kPanels;
  for (int i = static_cast<int>(thread_index() / 32); i < count; i += 4) {
    const i64 row = base + list.read(i), entry = run.dense() ? row : run.firstAtLeast(row);
    const u32 word = word_of<Shape>(tau, [&](int item) { return distances.read(entry * kItems + item); });
    if (lane_index() == 0) bits.write(i, word);
  }
  sync_threads();
}

/// All stages before the GEMM: tile.write(r, bits) for the rows [row, row + 64) below `rows`. `evaluate(list, count,
/// bits)` is one of the two above and ends with a barrier. 128 threads; scratch lies at byte 0 of shared memory. Ends with
/// a barrier.
template <class Shape, class Run, class Evaluate> TARE_DEVICE void check_tile(i64 rows, i64 row, const Run &run, shared<u32> tile, Evaluate evaluate) {
  const u32 t = thread_index();
  const shared<int> list = shared_at<int>(Shape::kListAt, Shape::kList);
  const shared<u32> bits = shared_at<u32>(Shape::kListAt + Shape::kList * 4, Shape::kList);
  const shared<u32> masks = shared_at<u32>(Shape::kListAt + 2 * Shape::kList * 4, 4); // evaluated rows 0-31, 32-63; carrying row relative to the tile, there or not

  // 1, 2: window test and compaction. Entry i of the list is the i-th evaluated row; the carrying row comes last.
  if (t < 64) {
    const u32 mask = ballot(row + t < rows && (run.dense() || in_window<Shape::kWindow>(run, row + t)));
    if (lane_index() == 0) masks.write(t / 32, mask);
  } else if (t < 96) {
    const i64 carrying = run.dense() ? -1 : carrying_row<Shape::kWindow>(run, row);
    if (lane_index() == 0) {
      masks.write(2, static_cast<u32>(carrying < 0 ? 0 : row - carrying));
      masks.write(3, carrying >= 0);
    }
  }
  sync_threads();
  const u32 low = masks.read(0), high = masks.read(1);
  const bool carries = masks.read(3) && !(low & 1); // no use when the first row is evaluated itself
  const int evaluated = static_cast<int>(count_bits(low) + count_bits(high)), count = evaluated + carries;
  if (t < 64) {
    const u32 word = t < 32 ? low : high, before = word & ((1u << t % 32) - 1);
    if (word >> t % 32 & 1) list.write(count_bits(before) + (t < 32 ? 0 : count_bits(low)), static_cast<int>(t));
  }
  if (t == 64 && carries) list.write(evaluated, -static_cast<int>(masks.read(2)));
  sync_threads();

  // 3, 4, 5: one word of bits for each listed row.
  evaluate(list, count, bits);

  // Every row takes the bits of the last evaluated row of its batch element.
  if (t < 64 && row + t < rows) {
    const u32 below = t < 32 ? 0 : high & (t == 63 ? ~0u : (2u << (t - 32)) - 1), first = t < 31 ? low & ((2u << t) - 1) : low;
    const int index = static_cast<int>(count_bits(first) + count_bits(below)) - 1; // list entry of the last evaluated row up to this one
    const i64 element = (row + t) / run.tokens;
    u32 word;
    if (index >= 0 && (row + list.read(index)) / run.tokens == element) word = bits.read(index);
    else if (carries && element == row / run.tokens) word = bits.read(evaluated);
    else word = run.carried ? run.carried.read(element) : 0;
    tile.write(t, word);
    if (block_index_x() == 0 && run.last && (row + t) % run.tokens == run.tokens - 1) run.last.write(element, word);
  }
  sync_threads();
}

/// sum_k b_k E[k][column] for the epilogue; E is [K][F].
template <class Shape> TARE_DEVICE float check_bias(u32 bits, global<const float> e, i64 columns, i64 column) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < Shape::kHeads; ++k)
    if (bits >> k & 1) sum += e.read(k * columns + column);
  return sum;
}

/// The GEMM that a check is fused into: in f32 or TF32 (W is how weights are stored), or of operands T = f16 or bf16.
template <class W> struct TileF32 : GemmF32 {
  static constexpr u32 kBytes = GemmF32::kSharedBytes<W>;
  template <class Out, class Epilogue>
  TARE_DEVICE static void run(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column, Epilogue epilogue) {
    gemm_f32_tile(h, k, b, out, m, n, k, row, column, epilogue);
  }
};
template <class W> struct TileTf32 : GemmTf32 {
  static constexpr u32 kBytes = GemmTf32::kSharedBytes<W>;
  template <class Out, class Epilogue>
  TARE_DEVICE static void run(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column, Epilogue epilogue) {
    gemm_tf32_tile(h, k, b, out, m, n, k, row, column, epilogue);
  }
};
template <class T> struct TileMma : GemmMma {
  static constexpr u32 kBytes = GemmMma::kSharedBytes;
  template <class H, class W, class Out, class Epilogue>
  TARE_DEVICE static void run(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 k, i64 row, i64 column, Epilogue epilogue) {
    gemm_mma_tile<T>(h, k, b, out, m, n, k, row, column, epilogue);
  }
};

/// Stage 6. Blocks: (ceil(n / (64 columnTiles)), ceil(m / 64)); a block does `columnTiles` tiles of its rows, so that
/// their bits are found once for all of them. `epilogue(row, column, sum, bits)`. Distances are those of h as it
/// lies in memory: bits do not depend on the precision of the GEMM.
template <class Shape, class Tile> struct Checked {
  static constexpr u32 kTile = Tile::kBytes > Shape::kScratchBytes ? Tile::kBytes : Shape::kScratchBytes;
  static constexpr u32 kSharedBytes = kTile + Shape::kRows * 4;
  template <class H, class W, class Out, class Run, class Evaluate, class Epilogue>
  TARE_DEVICE static void run(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const Run &run,
                              Evaluate evaluate, Epilogue epilogue) {
    const shared<u32> tile = shared_at<u32>(kTile, Shape::kRows);
    const i64 row = static_cast<i64>(block_index_y()) * Tile::kRows;
    check_tile<Shape>(m, row, run, tile, evaluate);
    for (i64 c = 0; c < columnTiles; ++c) {
      const i64 column = (static_cast<i64>(block_index_x()) * columnTiles + c) * Tile::kColumns;
      if (column < n)
        Tile::run(h, b, out, m, n, Shape::kWidth, row, column, [&](i64 r, i64 j, float v) { return epilogue(r, j, v, tile.read(r - row)); });
    }
  }
};
template <class Shape, class W> using CheckedF32 = Checked<Shape, TileF32<W>>;
template <class Shape, class W> using CheckedTf32 = Checked<Shape, TileTf32<W>>;
template <class Shape, class T> using CheckedMma = Checked<Shape, TileMma<T>>;

/// The fused form: a block evaluates its own listed rows and the one that carries into it.
template <class Gemm, class Shape, class H, class W, class Out, class Run, class Sparse, class Dense, class Epilogue>
TARE_DEVICE void gemm_evaluating(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const Run &run,
                                 const Sparse &sparse, const Dense &dense, global<const float> p, global<const float> tau, Epilogue epilogue) {
  const i64 row = static_cast<i64>(block_index_y()) * Shape::kRows;
  Gemm::run(h, b, out, m, n, columnTiles, run,
            [&](shared<int> list, int count, shared<u32> bits) {
              if (run.dense()) evaluate_rows<Shape>(h, list, count, row, dense, p, tau, bits);
              else evaluate_rows<Shape>(h, list, count, row, sparse, p, tau, bits);
            },
            epilogue);
}
template <class Shape, class W, class Out, class Run, class Sparse, class Dense, class Epilogue>
TARE_DEVICE void gemm_f32_checked(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const Run &run,
                                  const Sparse &sparse, const Dense &dense, global<const float> p, global<const float> tau, Epilogue epilogue) {
  gemm_evaluating<CheckedF32<Shape, W>, Shape>(h, b, out, m, n, columnTiles, run, sparse, dense, p, tau, epilogue);
}
template <class Shape, class W, class Out, class Run, class Sparse, class Dense, class Epilogue>
TARE_DEVICE void gemm_tf32_checked(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const Run &run,
                                   const Sparse &sparse, const Dense &dense, global<const float> p, global<const float> tau, Epilogue epilogue) {
  gemm_evaluating<CheckedTf32<Shape, W>, Shape>(h, b, out, m, n, columnTiles, run, sparse, dense, p, tau, epilogue);
}
template <class Shape, class T, class H, class W, class Out, class Run, class Sparse, class Dense, class Epilogue>
TARE_DEVICE void gemm_mma_checked(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const Run &run,
                                  const Sparse &sparse, const Dense &dense, global<const float> p, global<const float> tau, Epilogue epilogue) {
  gemm_evaluating<CheckedMma<Shape, T>, Shape>(h, b, out, m, n, columnTiles, run, sparse, dense, p, tau, epilogue);
}
template <class Shape, class W> constexpr u32 kGemmF32CheckedBytes = CheckedF32<Shape, W>::kSharedBytes;
template <class Shape, class W> constexpr u32 kGemmTf32CheckedBytes = CheckedTf32<Shape, W>::kSharedBytes;
template <class Shape> constexpr u32 kGemmMmaCheckedBytes = CheckedMma<Shape, f16>::kSharedBytes;

/// The split form's second launch: check_distances has run before. Same shared memory, same bits.
template <class Gemm, class Shape, class H, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_carrying(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const ListedRun &run,
                               global<const float> distances, global<const float> tau, Epilogue epilogue) {
  const i64 row = static_cast<i64>(block_index_y()) * Shape::kRows;
  Gemm::run(h, b, out, m, n, columnTiles, run,
            [&](shared<int> list, int count, shared<u32> bits) { carry_rows<Shape>(list, count, row, run, distances, tau, bits); }, epilogue);
}
template <class Shape, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_f32_carried(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const ListedRun &run,
                                  global<const float> distances, global<const float> tau, Epilogue epilogue) {
  gemm_carrying<CheckedF32<Shape, W>, Shape>(h, b, out, m, n, columnTiles, run, distances, tau, epilogue);
}
template <class Shape, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_tf32_carried(global<const float> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const ListedRun &run,
                                   global<const float> distances, global<const float> tau, Epilogue epilogue) {
  gemm_carrying<CheckedTf32<Shape, W>, Shape>(h, b, out, m, n, columnTiles, run, distances, tau, epilogue);
}
template <class Shape, class T, class H, class W, class Out, class Epilogue>
TARE_DEVICE void gemm_mma_carried(global<const H> h, global<const W> b, global<Out> out, i64 m, i64 n, i64 columnTiles, const ListedRun &run,
                                  global<const float> distances, global<const float> tau, Epilogue epilogue) {
  gemm_carrying<CheckedMma<Shape, T>, Shape>(h, b, out, m, n, columnTiles, run, distances, tau, epilogue);
}

} // namespace tare
