/* Runs a decoder engine on one sequence of token ids and prints the most likely next token. In: ENGINE and ids. Out: one line. The whole C API in 40 lines.
 * Build: cc -I runtime examples/c/run.c -L build/lib -ltare_rt -o run    Use: LD_LIBRARY_PATH=build/lib ./run contract-lm.tare 256 35 32 65 */
#include "tare.h"
#include <stdio.h>
#include <stdlib.h>

static int fail(const tare_error *error) {
  fprintf(stderr, "error: %s\n", error->message);
  return (int)error->code;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: run ENGINE ID...\n");
    return TARE_USAGE;
  }
  tare_error error;
  tare_engine_t *engine = tare_engine_open(argv[1], NULL, &error);
  if (!engine) return fail(&error);
  tare_context_t *context = tare_context_create(engine, NULL, &error);
  if (!context) return fail(&error);

  int64_t count = argc - 2, shape[2] = {1, count};
  int64_t *ids = malloc((size_t)count * sizeof *ids);
  if (!ids) return TARE_LIMIT;
  for (int64_t i = 0; i < count; ++i) ids[i] = atoll(argv[i + 2]);
  tare_tensor input = {TARE_I64, 2, shape, ids, (uint64_t)count * sizeof *ids}, logits;
  if (tare_context_set_input(context, "input_ids", &input, &error) != TARE_OK || tare_context_run(context, &error) != TARE_OK ||
      tare_context_get_output(context, "logits", &logits, &error) != TARE_OK)
    return fail(&error);

  if (logits.dtype != TARE_F32 || logits.rank != 3) return TARE_USAGE;
  const float *last = (const float *)logits.data + (logits.shape[1] - 1) * logits.shape[2];
  int64_t best = 0;
  for (int64_t i = 1; i < logits.shape[2]; ++i)
    if (last[i] > last[best]) best = i;
  printf("next token %lld, logit %.4f\n", (long long)best, last[best]);
  free(ids);
  tare_context_destroy(context);
  tare_engine_close(engine);
  return 0;
}
