/* C API of libtare_anchors: finds structural anchors (headings, clause numbers, tables, annexes, cross references) in Chinese and English text.
 *
 * In: UTF-8 text of any size and quality, whole or in pieces. Out: anchors in text order that never overlap, with byte and code-point ranges into the
 * original text (docs/anchors.md is the definition). Holds: time linear in the text, memory constant when anchors are taken by a callback, the same
 * anchors however the text is cut into pieces; no C++ exception crosses this API, nothing aborts; bad bytes are counted, never fatal.
 * Threads: a scanner belongs to one thread at a time; there are no globals.
 */
#ifndef TARE_ANCHORS_H
#define TARE_ANCHORS_H
#include "tare.h"

#if defined(TARE_BUILDING_ANCHORS)
#define TARE_ANCHORS_API __attribute__((visibility("default")))
#else
#define TARE_ANCHORS_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum tare_anchor_type {
  TARE_ANCHOR_HEADING = 0,
  TARE_ANCHOR_CLAUSE = 1,
  TARE_ANCHOR_TABLE = 2,
  TARE_ANCHOR_CROSS_REFERENCE = 3,
  TARE_ANCHOR_ANNEX = 4,
  TARE_ANCHOR_OUTLINE = 5 /* bare outline labels, only with tare_anchor_options.outline */
} tare_anchor_type;

typedef struct tare_anchor {
  tare_anchor_type type;
  const char *value;             /* normalised, UTF-8, ends with 0; e.g. "4.2", "annex 3", "chapter 2" */
  uint64_t byte_begin, byte_end; /* half-open, into the original text */
  uint64_t char_begin, char_end; /* the same in code points; a byte that is no UTF-8 counts as one */
} tare_anchor;

/* Set struct_bytes to sizeof(tare_anchor_options); zero the rest. */
typedef struct tare_anchor_options {
  size_t struct_bytes;
  int outline;    /* also bare outline labels: `4.2 Payment`, `(a)`, a Chinese numeral with its mark */
  int no_network; /* the grammar alone, every trigger is proposed: for measurements */
} tare_anchor_options;

/* What was wrong with the text. Offsets are of the first TARE_ANCHOR_OFFSETS places. */
#define TARE_ANCHOR_OFFSETS 16
typedef struct tare_anchor_summary {
  uint64_t bytes, chars, anchors;
  uint64_t invalid_utf8;       /* ill-formed sequences (maximal subparts), lone surrogates included */
  uint64_t control_characters; /* C0 except tab, line feed, form feed, carriage return; DEL; C1 */
  uint64_t invalid_offsets[TARE_ANCHOR_OFFSETS], control_offsets[TARE_ANCHOR_OFFSETS];
  int conservative;            /* 1 when either count is not 0: run such a request on the full plan */
  uint64_t triggers, asked, proposed; /* designators by the grammar; of these shown to the network; of all confirmed */
  uint64_t steps;              /* characters looked at, all passes together: grows linearly with `chars` */
} tare_anchor_summary;

typedef struct tare_anchors tare_anchors_t;
typedef struct tare_anchor_scanner tare_anchor_scanner_t;
/* Called in text order; `anchor` and its value are valid during the call. */
typedef void (*tare_anchor_callback)(void *user, const tare_anchor *anchor);

/* The whole text at once; `options` may be NULL. NULL on failure (out of memory, null text). Destroy with tare_anchors_destroy. */
TARE_ANCHORS_API tare_anchors_t *tare_scan_anchors(const char *text, size_t bytes, const tare_anchor_options *options, tare_error *error);
TARE_ANCHORS_API size_t tare_anchors_count(const tare_anchors_t *anchors);
TARE_ANCHORS_API const tare_anchor *tare_anchors_get(const tare_anchors_t *anchors, size_t index); /* NULL when out of range */
TARE_ANCHORS_API const tare_anchor_summary *tare_anchors_summary(const tare_anchors_t *anchors);
TARE_ANCHORS_API void tare_anchors_destroy(tare_anchors_t *anchors);

/* The same for text in pieces and of any size, in constant memory. */
TARE_ANCHORS_API tare_anchor_scanner_t *tare_anchor_scanner_create(const tare_anchor_options *options, tare_anchor_callback callback, void *user, tare_error *error);
TARE_ANCHORS_API tare_status tare_anchor_scanner_feed(tare_anchor_scanner_t *scanner, const char *text, size_t bytes, tare_error *error);
/* The end of the text: the last anchors are reported, `summary` (may be NULL) is filled. Feed no more. */
TARE_ANCHORS_API tare_status tare_anchor_scanner_finish(tare_anchor_scanner_t *scanner, tare_anchor_summary *summary, tare_error *error);
TARE_ANCHORS_API void tare_anchor_scanner_destroy(tare_anchor_scanner_t *scanner);

/* "heading", "clause", "table", "cross_reference", "annex", "outline" */
TARE_ANCHORS_API const char *tare_anchor_type_name(tare_anchor_type type);

/* The hashed anchor vector of a text (docs/anchors.md, "Retrieval"): TARE_ANCHOR_VECTOR numbers of which the anchors' targets set some, scaled to the
 * returned weight: 0.8 when the text names an anchor, 0.3 when it does not (then words decide). The weight is 0 and all numbers are 0 for a text without words. */
#define TARE_ANCHOR_VECTOR 128
TARE_ANCHORS_API tare_status tare_anchor_vector(const char *text, size_t bytes, float *vector, float *weight, tare_error *error);

#ifdef __cplusplus
}
#endif
#endif
