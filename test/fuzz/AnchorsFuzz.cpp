// libFuzzer target: any bytes through the anchor scanner, whole and in pieces. In: any bytes. Must hold: no crash, no leak; anchors lie inside the text, in order,
// without overlap; the pieces change nothing; the work is linear. Seeds: the texts of test/data/anchors and a few floods (anchors_corpus.py).
#include "runtime/tare_anchors.h"
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Seen {
  uint64_t begin, end, charBegin, charEnd;
  int type;
  std::string value;
  bool operator==(const Seen &) const = default;
};

struct Run {
  std::vector<Seen> anchors;
  tare_anchor_summary summary{};
};

void check(bool holds) {
  if (!holds) std::abort();
}

Run scan(const uint8_t *data, size_t size, size_t piece, int outline) {
  Run run;
  tare_error error{};
  tare_anchor_options options{sizeof options, outline, 0};
  auto take = [](void *user, const tare_anchor *a) {
    static_cast<Run *>(user)->anchors.push_back({a->byte_begin, a->byte_end, a->char_begin, a->char_end, a->type, a->value});
  };
  tare_anchor_scanner_t *scanner = tare_anchor_scanner_create(&options, take, &run, &error);
  check(scanner != nullptr);
  for (size_t at = 0; at < size; at += piece)
    check(tare_anchor_scanner_feed(scanner, reinterpret_cast<const char *>(data) + at, size - at < piece ? size - at : piece, &error) == TARE_OK);
  check(tare_anchor_scanner_finish(scanner, &run.summary, &error) == TARE_OK);
  tare_anchor_scanner_destroy(scanner);
  return run;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const int outline = data[0] & 1;
  Run whole = scan(data, size, size, outline), pieces = scan(data, size, 1 + data[size / 2] % 97, outline);
  check(whole.anchors == pieces.anchors);
  check(whole.summary.bytes == size && whole.summary.chars <= size);
  uint64_t last = 0;
  for (auto &a : whole.anchors) {
    check(a.begin >= last && a.begin < a.end && a.end <= size && a.charBegin < a.charEnd && a.charEnd <= whole.summary.chars && !a.value.empty());
    last = a.end;
  }
  check(whole.summary.steps <= 400 * (size + 64));
  float vector[TARE_ANCHOR_VECTOR], weight = 0;
  tare_error error{};
  check(tare_anchor_vector(reinterpret_cast<const char *>(data), size, vector, &weight, &error) == TARE_OK);
  return 0;
}
