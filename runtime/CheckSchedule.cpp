// Anchors to rows. A batch element's rows are listed in ascending order: its first unmasked token (or the first of this run when nothing is carried), then the
// windows of its anchors in ascending order, each row once.
#include "runtime/CheckSchedule.h"
#include "runtime/Validate.h"
#include <algorithm>
#include <cstring>

namespace tare {

CheckSchedule::CheckSchedule(const fb::Plan &plan) : plan(plan), checks(plan.checks()) {
  if (checks) described.resize(checks->items()->size());
}

namespace {
struct Sizes {
  int64_t batch, tokens, past, anchors;
  int64_t rows, sorted, starts, carried; ///< bytes of the list, of all anchors, of where elements start, of one side of the state
};

Result<Sizes> sizesOf(const fb::Checks &checks, const fb::Plan &plan, const Binding &binding) {
  Sizes s{binding.dim(checks.batch()), binding.dim(checks.tokens()), binding.dim(checks.past()), binding.dim(plan.inputs()->Get(checks.anchors())->dims()->Get(1)), 0, 0, 0, 0};
  if (s.batch < 0 || s.tokens < 0 || s.past < 0 || s.anchors < 0) return Error(Status::Refused, "the fidelity checks have a negative size for these input shapes");
  int64_t each, total, all, anchors;
  bool fits = !__builtin_mul_overflow(s.anchors, static_cast<int64_t>(checks.window()), &each) && !__builtin_mul_overflow(std::min(s.tokens, each < INT64_MAX ? each + 1 : each), s.batch, &total) &&
              !__builtin_mul_overflow(total, 8, &s.rows) && !__builtin_mul_overflow(s.anchors, s.batch, &anchors) && !__builtin_mul_overflow(anchors, 4, &s.sorted) &&
              !__builtin_mul_overflow(s.batch, 8, &s.starts) &&
              !__builtin_mul_overflow(s.batch, static_cast<int64_t>(checks.items()->size()) * 4, &s.carried) &&
              !__builtin_mul_overflow(s.batch, s.tokens, &all) && !__builtin_mul_overflow(all, static_cast<int64_t>(checks.items()->size()) * 4, &all);
  if (!fits || s.past > INT64_MAX - s.tokens) return Error(Status::Limit, "the fidelity checks have too many rows");
  return s;
}
} // namespace

Result<int64_t> CheckSchedule::bytes(const fb::Plan &plan, const Binding &binding) {
  if (!plan.checks()) return 0;
  auto sizes = sizesOf(*plan.checks(), plan, binding);
  if (!sizes) return std::move(sizes.error());
  int64_t given, total, described = static_cast<int64_t>(plan.checks()->items()->size() * sizeof(CheckRows));
  bool fits = !__builtin_mul_overflow(sizes->sorted, 2, &given) && !__builtin_add_overflow(given, sizes->rows, &total) && !__builtin_add_overflow(total, sizes->starts, &total) &&
              sizes->carried <= INT64_MAX / 4 && !__builtin_add_overflow(total, 3 * sizes->carried + described, &total);
  if (!fits) return Error(Status::Limit, "the fidelity checks have too many rows");
  return total;
}

Result<void> CheckSchedule::prepare(const Binding &binding) {
  if (!checks) return {};
  auto sizes = sizesOf(*checks, plan, binding);
  if (!sizes) return std::move(sizes.error());
  batch = sizes->batch, tokens = sizes->tokens, past = sizes->past, anchorCount = sizes->anchors, most = sizes->rows / 8;
  TARE_TRY(rows.reserve(static_cast<size_t>(sizes->rows), "the rows of the fidelity checks"));
  TARE_TRY(sorted.reserve(static_cast<size_t>(sizes->sorted), "the sorted anchors"));
  TARE_TRY(starts.reserve(static_cast<size_t>(sizes->starts), "where the fidelity checks start"));
  if (traces) TARE_TRY(everyRow.reserve(static_cast<size_t>(batch * tokens) * 4 * described.size(), "the bits of every token"));
  if (batch != batchSeen) length = 0; // other elements: another request
  if (length > 0) return {};
  auto each = static_cast<size_t>(sizes->carried);
  for (Block *side : {&states[0], &states[1], &nothing}) TARE_TRY(side->reserve(each, "the carried bits of the fidelity checks"));
  memset(nothing.data(), 0, each);
  return {};
}

/// Position in the whole sequence of the first token whose mask is not zero; past + tokens when all are masked.
int64_t CheckSchedule::firstUnmasked(const void *mask, int64_t columns, int64_t element) const {
  if (!mask) return 0;
  size_t width = dtypeBytes(plan.inputs()->Get(static_cast<uint32_t>(checks->mask()))->dtype());
  const char *row = static_cast<const char *>(mask) + static_cast<size_t>(element * columns) * width;
  int64_t offset = columns == past + tokens ? 0 : past; // a mask of this run's tokens only
  for (int64_t i = 0; i < columns; ++i)
    for (size_t byte = 0; byte < width; ++byte)
      if (row[static_cast<size_t>(i) * width + byte]) return offset + i;
  return past + tokens;
}

/// tare_check_rows::first of an element whose first unmasked token is at `first`.
int64_t CheckSchedule::startOf(int64_t first) const {
  const int64_t low = std::max(past, first);
  return first >= past || !isCarried ? low : ~low;
}

void CheckSchedule::listElement(const int32_t *anchors, int64_t count, int64_t element, int64_t start, int64_t &used) {
  auto *list = static_cast<int64_t *>(rows.data());
  int64_t low = start < 0 ? ~start : start, end = past + tokens, next = low, window = checks->window();
  auto list1 = [&](int64_t position) { list[used++] = element * tokens + position - past; };
  if (next < end && start >= 0) list1(next++);
  for (int64_t i = 0; i < count; ++i) {
    if (anchors[i] < 0 || (i > 0 && anchors[i] == anchors[i - 1])) continue;
    int64_t from = std::max(anchors[i] - window, low), to = std::min<int64_t>(anchors[i], end);
    now.hits += from < to;
    for (next = std::max(next, from); next < to; ++next) list1(next);
  }
}

Result<void> CheckSchedule::begin(const int32_t *anchors, const void *mask, int64_t maskColumns) {
  if (!checks) return {};
  isCarried = past > 0 && length == past && batchSeen == batch;
  now = {batch * tokens, batch * tokens, 0};
  int64_t used = 0;
  auto *start = static_cast<int64_t *>(starts.data());
  for (int64_t b = 0; anchors && b < batch; ++b) {
    const int32_t *given = anchors + b * anchorCount;
    for (int64_t i = 0; i < anchorCount; ++i)
      if (given[i] < -1)
        return Error(Error::format(Status::Refused, "an anchor is below -1", "[%lld, %lld] is %d; anchors are token positions from 0, -1 is padding", static_cast<long long>(b),
                                   static_cast<long long>(i), given[i])
                         .ofTensor(plan.inputs()->Get(checks->anchors())->name()->c_str()));
    int32_t *order = static_cast<int32_t *>(sorted.data()) + b * anchorCount;
    if (anchorCount) memcpy(order, given, static_cast<size_t>(anchorCount) * 4);
    std::sort(order, order + anchorCount);
    start[b] = startOf(firstUnmasked(mask, maskColumns, b));
    listElement(order, anchorCount, b, start[b], used);
  }
  if (anchors && !described.empty()) now.sparse = used;
  for (size_t i = 0; i < described.size(); ++i)
    described[i] = {static_cast<const int64_t *>(rows.data()), anchors ? used : -1, std::max<int64_t>(tokens, 1), isCarried ? state(current, i) : static_cast<const uint32_t *>(nothing.data()),
                    state(1 - current, i), traces ? static_cast<uint32_t *>(everyRow.data()) + i * static_cast<size_t>(batch * tokens) : nullptr,
                    static_cast<const int32_t *>(sorted.data()), anchors ? anchorCount : -1, static_cast<const int64_t *>(starts.data()), past};
  return {};
}

void CheckSchedule::commit() {
  if (!checks || batch == 0 || tokens == 0) return;
  current = 1 - current;
  length = past + tokens, batchSeen = batch;
}

Result<uint32_t> CheckSchedule::bits(size_t check, size_t element) const {
  if (length == 0) return Error(Status::Usage, "no bits are carried: there was no run since the context was made or reset");
  if (check >= described.size() || element >= static_cast<size_t>(batchSeen)) return Error(Status::Usage, "there is no such fidelity check or batch element");
  return state(current, check)[element];
}

} // namespace tare
