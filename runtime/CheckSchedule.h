// Which token rows the fidelity checks of a run evaluate (spec 6), and the bits that a context carries from run to run. In: the anchors, the mask, sizes. Out: one
// tare_check_rows (kernels/cpu/kernels.h) per check. Must hold: bits of a run become the carried ones only after it succeeded; after the first run at given
// shapes nothing is allocated.
#pragma once
#include "runtime/Binding.h"
#include "runtime/Memory.h"

namespace tare {

/// What the code reads for one check.
struct CheckRows {
  const int64_t *rows;
  int64_t count, tokens;
  const uint32_t *carried;
  uint32_t *last;
  uint32_t *all; ///< null unless traced
  const int32_t *anchors;
  int64_t anchorCount;
  const int64_t *first;
  int64_t past;
};

/// Of one run: token rows for one check module, all batch elements together.
struct CheckCounts {
  int64_t dense = 0, sparse = 0, hits = 0;
};

class CheckSchedule {
public:
  explicit CheckSchedule(const fb::Plan &plan);
  bool empty() const { return !checks; }
  /// Sizes follow from the bound shapes.
  Result<void> prepare(const Binding &binding);
  /// `anchors` [batch, A] or null when the input is left out; `mask` [batch, maskColumns] or null. Refuses anchors below -1.
  Result<void> begin(const int32_t *anchors, const void *mask, int64_t maskColumns);
  void *address(size_t check) { return &described[check]; }
  /// For a device with memory of its own: how many checks, what begin() described, the most rows that one run at these shapes lists, batch
  /// elements, anchors of each.
  size_t count() const { return described.size(); }
  const CheckRows &check(size_t index) const { return described[index]; }
  int64_t mostRows() const { return most; }
  int64_t elements() const { return batch; }
  int64_t anchorsOfElement() const { return anchorCount; }
  void commit();
  void reset() { length = 0; }
  /// From the next prepare() on: the bits of every row are kept.
  void trace(bool on) { traces = on; }
  bool tracing() const { return traces; }
  /// Of the last run, while tracing: a word per row of one check.
  const uint32_t *traced(size_t check) const { return static_cast<const uint32_t *>(everyRow.data()) + check * static_cast<size_t>(batch * tokens); }
  /// Ascending; null when every row was evaluated.
  const int64_t *evaluatedRows() const { return described.empty() || described[0].count < 0 ? nullptr : static_cast<const int64_t *>(rows.data()); }
  int64_t rowCount() const { return batch * tokens; }
  /// Bytes that all checks hold for a run at these shapes, the caller's anchors included.
  static Result<int64_t> bytes(const fb::Plan &plan, const Binding &binding);
  const CheckCounts &counts() const { return now; }
  /// The carried bits of one batch element; an error before a run and out of range.
  Result<uint32_t> bits(size_t check, size_t element) const;

private:
  int64_t firstUnmasked(const void *mask, int64_t columns, int64_t element) const;
  uint32_t *state(int side, size_t check) const { return static_cast<uint32_t *>(states[side].data()) + check * static_cast<size_t>(batch); }
  int64_t startOf(int64_t first) const;
  void listElement(const int32_t *sorted, int64_t count, int64_t element, int64_t start, int64_t &used);

  const fb::Plan &plan;
  const fb::Checks *checks;
  std::vector<CheckRows> described;
  Block rows, sorted, starts, states[2], nothing; // `nothing`: zeros, carried into a new request
  Block everyRow;                         // when traced
  int current = 0;       // the side that is carried into the next run
  int64_t length = 0;    // tokens that the carried bits stand for; 0: there are none
  int64_t batchSeen = 0; // elements that they stand for
  int64_t batch = 0, tokens = 0, past = 0, anchorCount = 0, most = 0;
  bool isCarried = false, traces = false;
  CheckCounts now;
};

} // namespace tare
