// The C border of the scanner (runtime/tare_anchors.h). In: the caller's text. Out: anchors, a summary, a vector. Holds: running out of memory is the only
// exception inside, and it ends here as TARE_LIMIT.
#include "runtime/anchors/Scanner.h"
#include "runtime/anchors/Vector.h"
#include "runtime/tare_anchors.h"
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

using tare::anchors::Anchor;

static tare_status refuse(tare_error *error, tare_status code, const char *message) {
  if (error) {
    std::memset(error, 0, sizeof *error);
    error->code = code, error->offset = -1;
    std::snprintf(error->message, sizeof error->message, "%s", message);
  }
  return code;
}

template <typename F> static tare_status guarded(tare_error *error, F body) {
  try {
    body();
    return TARE_OK;
  } catch (const std::bad_alloc &) {
    return refuse(error, TARE_LIMIT, "out of memory while scanning anchors");
  } catch (...) {
    return refuse(error, TARE_INTERNAL, "the anchor scanner failed");
  }
}

static tare::anchors::Options optionsOf(const tare_anchor_options *options) {
  tare_anchor_options known{};
  if (options) std::memcpy(&known, options, options->struct_bytes < sizeof known ? options->struct_bytes : sizeof known);
  return {known.outline != 0, known.no_network == 0};
}

static tare_anchor view(const Anchor &anchor) {
  return {static_cast<tare_anchor_type>(anchor.type), anchor.value.c_str(), anchor.byteBegin, anchor.byteEnd, anchor.charBegin, anchor.charEnd};
}

static tare_anchor_summary summaryOf(const tare::anchors::Scanner &scanner) {
  tare_anchor_summary out{};
  auto &prepared = scanner.prepared();
  out.bytes = prepared.byteCount(), out.chars = prepared.charCount(), out.anchors = scanner.count().anchors;
  out.invalid_utf8 = prepared.invalid.count, out.control_characters = prepared.control.count;
  for (size_t i = 0; i < TARE_ANCHOR_OFFSETS; ++i) out.invalid_offsets[i] = prepared.invalid.offsets[i], out.control_offsets[i] = prepared.control.offsets[i];
  out.conservative = out.invalid_utf8 || out.control_characters;
  out.triggers = scanner.count().triggers, out.asked = scanner.count().asked, out.proposed = scanner.count().proposed, out.steps = scanner.count().steps;
  return out;
}

struct tare_anchors {
  std::deque<Anchor> anchors;
  std::deque<tare_anchor> views;
  tare_anchor_summary summary{};
};

struct tare_anchor_scanner {
  tare_anchor_scanner(const tare::anchors::Options &options, tare_anchor_callback callback, void *user)
      : scanner(options, [callback, user](const Anchor &anchor) {
          const tare_anchor shown = view(anchor);
          callback(user, &shown);
        }) {}
  tare::anchors::Scanner scanner;
  bool finished = false;
};

extern "C" {

tare_anchors_t *tare_scan_anchors(const char *text, size_t bytes, const tare_anchor_options *options, tare_error *error) {
  if (!text && bytes) return refuse(error, TARE_USAGE, "text is NULL"), nullptr;
  std::unique_ptr<tare_anchors> out;
  tare_status status = guarded(error, [&] {
    out = std::make_unique<tare_anchors>();
    tare::anchors::Scanner scanner(optionsOf(options), [&](const Anchor &anchor) { out->anchors.push_back(anchor); });
    scanner.feed(text, bytes);
    scanner.finish();
    for (auto &anchor : out->anchors) out->views.push_back(view(anchor));
    out->summary = summaryOf(scanner);
  });
  return status == TARE_OK ? out.release() : nullptr;
}

size_t tare_anchors_count(const tare_anchors_t *anchors) { return anchors->views.size(); }
const tare_anchor *tare_anchors_get(const tare_anchors_t *anchors, size_t index) { return index < anchors->views.size() ? &anchors->views[index] : nullptr; }
const tare_anchor_summary *tare_anchors_summary(const tare_anchors_t *anchors) { return &anchors->summary; }
void tare_anchors_destroy(tare_anchors_t *anchors) { delete anchors; }

tare_anchor_scanner_t *tare_anchor_scanner_create(const tare_anchor_options *options, tare_anchor_callback callback, void *user, tare_error *error) {
  if (!callback) return refuse(error, TARE_USAGE, "callback is NULL"), nullptr;
  tare_anchor_scanner *out = nullptr;
  (void)guarded(error, [&] { out = new tare_anchor_scanner(optionsOf(options), callback, user); });
  return out;
}

tare_status tare_anchor_scanner_feed(tare_anchor_scanner_t *scanner, const char *text, size_t bytes, tare_error *error) {
  if (scanner->finished) return refuse(error, TARE_USAGE, "the scanner is finished");
  if (!text && bytes) return refuse(error, TARE_USAGE, "text is NULL");
  return guarded(error, [&] { scanner->scanner.feed(text, bytes); });
}

tare_status tare_anchor_scanner_finish(tare_anchor_scanner_t *scanner, tare_anchor_summary *summary, tare_error *error) {
  if (scanner->finished) return refuse(error, TARE_USAGE, "the scanner is finished");
  scanner->finished = true;
  return guarded(error, [&] {
    scanner->scanner.finish();
    if (summary) *summary = summaryOf(scanner->scanner);
  });
}

void tare_anchor_scanner_destroy(tare_anchor_scanner_t *scanner) { delete scanner; }

const char *tare_anchor_type_name(tare_anchor_type type) {
  static constexpr const char *names[] = {"heading", "clause", "table", "cross_reference", "annex", "outline"};
  return static_cast<unsigned>(type) < 6 ? names[type] : "";
}

tare_status tare_anchor_vector(const char *text, size_t bytes, float *vector, float *weight, tare_error *error) {
  if ((!text && bytes) || !vector) return refuse(error, TARE_USAGE, "text or vector is NULL");
  return guarded(error, [&] {
    const float w = tare::anchors::anchorVector(text, bytes, vector);
    if (weight) *weight = w;
  });
}
}
