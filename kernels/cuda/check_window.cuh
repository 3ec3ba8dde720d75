// Which rows a fidelity check evaluates, part of check.cuh (spec 6): the window test of stage 1. In: a request's anchors, or rows that were listed before the launch.
// Out: whether a row is evaluated, and which evaluated row before it carries into it. Must hold: the rule is runtime/CheckSchedule's, which makes both forms.
// A row is batch element * tokens + token, at position past + token.
#pragma once
#include "kernels/cuda/math.cuh"

namespace tare {

/// How many of [0, count) come before the first one for which `reached(i)` holds; from that one on it holds for all.
template <class Reached> TARE_DEVICE i64 first_that(i64 count, Reached reached) {
  i64 low = 0, high = count;
  while (low < high) {
    const i64 middle = low + (high - low) / 2;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// The fused form, which tests every row itself.
struct CheckRun {
  global<const int> anchors;   // [batch][anchorCount], ascending in each element; -1 is padding
  i64 anchorCount;             // -1: no anchors were given, every row is evaluated
  global<const i64> first;     // [batch]: the position before which no row is evaluated: p when the row at p is evaluated, ~p when it is not
  i64 tokens, past;
  global<const u32> carried;   // [batch]: bits that flow into the first row
  global<u32> last;            // [batch]: bits of the last row, for the next call
  TARE_DEVICE bool dense() const { return anchorCount < 0; }
  TARE_DEVICE i64 anchor(i64 element, i64 i) const { return anchors.read(element * anchorCount + i); }
  /// The place of the first anchor of the element that lies behind `position`.
  TARE_DEVICE i64 anchorBehind(i64 element, i64 position) const {
    return first_that(anchorCount, [&](i64 i) { return anchor(element, i) > position; });
  }
};
/// The split form, for which rows were listed: its grid and its distances count in entries of the list.
struct ListedRun {
  global<const i64> rows; // ascending
  i64 count;              // -1: no anchors were given, every row is evaluated
  i64 tokens;
  global<const u32> carried;
  global<u32> last;
  TARE_DEVICE bool dense() const { return count < 0; }
  /// The first entry of the list that is at least `row`.
  TARE_DEVICE i64 firstAtLeast(i64 row) const {
    return first_that(count, [&](i64 i) { return rows.read(i) >= row; });
  }
};

/// Is the row the first one, or one of the `Window` before an anchor? The nearest anchor behind it decides.
template <int Window> TARE_DEVICE bool in_window(const CheckRun &run, i64 row) {
  const i64 element = row / run.tokens, position = run.past + row % run.tokens, first = run.first.read(element);
  if (position == first) return true;
  if (position < (first < 0 ? ~first : first)) return false;
  const i64 next = run.anchorBehind(element, position);
  return next < run.anchorCount && position >= run.anchor(element, next) - Window;
}
template <int Window> TARE_DEVICE bool in_window(const ListedRun &run, i64 row) {
  const i64 at = run.firstAtLeast(row);
  return at < run.count && run.rows.read(at) == row;
}

/// The last evaluated row of the same batch element before `row`, or -1 when there is none in this call: the row before, if an anchor behind that one is near;
/// otherwise the last one of the window before the anchor that lies there, or the first one.
template <int Window> TARE_DEVICE i64 carrying_row(const CheckRun &run, i64 row) {
  const i64 element = row / run.tokens, before = run.past + row % run.tokens - 1, first = run.first.read(element), lowest = first < 0 ? ~first : first;
  if (before < lowest) return -1; // `lowest` is not below `past`
  const i64 next = run.anchorBehind(element, before);
  i64 position = -1;
  if (next < run.anchorCount && before >= run.anchor(element, next) - Window) position = before;
  else if (next > 0) position = run.anchor(element, next - 1) - 1;
  if (position < lowest) position = first;
  return position < 0 ? -1 : element * run.tokens + position - run.past;
}
template <int Window> TARE_DEVICE i64 carrying_row(const ListedRun &run, i64 row) {
  const i64 at = run.firstAtLeast(row), before = at > 0 ? run.rows.read(at - 1) : -1;
  return before >= row / run.tokens * run.tokens ? before : -1;
}

} // namespace tare
