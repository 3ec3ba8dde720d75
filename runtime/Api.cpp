// The C API: null checks, conversion of errors, and the border that no exception crosses (only std::bad_alloc can arise). tare.h documents it.
#include "runtime/Context.h"
#include <cstdlib>
#include <cstring>
#include <new>

using tare::Error;
using tare::Result;
using tare::Status;

struct tare_engine { std::shared_ptr<const tare::Engine> shared; };
struct tare_context { std::unique_ptr<tare::Context> own; };

namespace {
tare_status report(const Error &error, tare_error *out) {
  auto code = static_cast<tare_status>(error.code);
  if (!out) return code;
  memset(out, 0, sizeof *out);
  out->code = code, out->offset = error.offset;
  snprintf(out->step, sizeof out->step, "%s", error.step);
  snprintf(out->tensor, sizeof out->tensor, "%s", error.tensor);
  snprintf(out->message, sizeof out->message, "%s%s%s%s%s%s%s%s%s", error.text, error.detail[0] ? ": " : "", error.detail, error.tensor[0] ? " (tensor '" : "", error.tensor,
           error.tensor[0] ? "')" : "", error.step[0] ? " (node '" : "", error.step, error.step[0] ? "')" : "");
  if (out->offset >= 0) {
    size_t used = strlen(out->message);
    snprintf(out->message + used, sizeof out->message - used, " (at byte %lld)", static_cast<long long>(out->offset));
  }
  return code;
}
tare_status finish(Result<void> result, tare_error *error) {
  if (!result) return report(result.error(), error);
  if (error) memset(error, 0, sizeof *error), error->offset = -1;
  return TARE_OK;
}
/// Calls `body`, which returns Result<void>; every way out of it becomes a status.
template <typename F> tare_status guarded(tare_error *error, F body) {
  try {
    return finish(body(), error);
  } catch (const std::bad_alloc &) {
    return report(Error(Status::Limit, "out of memory"), error);
  } catch (...) {
    return report(Error(Status::Internal, "unexpected exception"), error);
  }
}
Result<void> needed(bool ok) {
  if (ok) return {};
  return Error(Status::Usage, "a required pointer is null");
}
/// A caller's struct of this or another version: what it has is taken, the rest is zero.
template <typename T> T copied(const T *options) {
  T copy;
  memset(&copy, 0, sizeof copy);
  if (options && options->struct_bytes >= sizeof(size_t)) memcpy(&copy, options, options->struct_bytes < sizeof copy ? options->struct_bytes : sizeof copy);
  return copy;
}
template <typename Open> tare_engine_t *openWith(tare_error *error, Open open) {
  tare_engine_t *engine = nullptr;
  guarded(error, [&]() -> Result<void> {
    auto opened = open();
    if (!opened) return std::move(opened.error());
    engine = new tare_engine{std::move(*opened)};
    return {};
  });
  return engine;
}
template <typename Tensors> Result<void> info(const tare::fb::Plan &plan, const Tensors &tensors, size_t index, tare_tensor_info *out) {
  TARE_TRY(needed(out));
  if (index >= tensors.size()) return Error(Status::Usage, "there is no tensor of this number");
  auto &tensor = *tensors.Get(static_cast<uint32_t>(index));
  memset(out, 0, sizeof *out);
  out->name = tensor.name()->c_str();
  out->dtype = static_cast<tare_dtype>(tensor.dtype());
  out->rank = static_cast<int32_t>(tensor.dims()->size());
  for (uint32_t i = 0; i < tensor.dims()->size(); ++i) {
    auto *text = plan.dims()->Get(tensor.dims()->Get(i))->text();
    out->dims[i] = text ? text->c_str() : "?";
  }
  out->optional = tensor.optional();
  out->default_kind = tensor.optional() ? tensor.default_kind()->c_str() : "";
  return {};
}
/// Binds the shapes that are given, for an estimate.
Result<void> bindFor(tare::Binding &binding, const tare::fb::Plan &plan, const char *const *names, const tare_tensor *given, size_t count) {
  std::vector<tare::Shape> shapes(plan.inputs()->size());
  for (size_t i = 0; i < count; ++i) {
    TARE_TRY(needed(names[i]));
    uint32_t index = 0;
    while (index < shapes.size() && strcmp(plan.inputs()->Get(index)->name()->c_str(), names[i]) != 0) ++index;
    if (index == shapes.size()) return Error(Error(Status::Refused, "the engine has no such input").ofTensor(names[i]));
    if (given[i].rank < 0 || given[i].rank > 8 || (given[i].rank && !given[i].shape)) return Error(Error(Status::Usage, "rank or shape pointer is wrong").ofTensor(names[i]));
    shapes[index].from = tare::Shape::From::Caller, shapes[index].rank = given[i].rank;
    for (int32_t d = 0; d < given[i].rank; ++d) {
      shapes[index].dims[d] = given[i].shape[d];
      if (shapes[index].dims[d] < 0) return Error(Error(Status::Refused, "input has an impossible shape").ofTensor(names[i]));
    }
  }
  std::vector<tare::LinkedCapacity> links(plan.states()->size());
  return binding.bind(shapes.data(), links.data(), true);
}
} // namespace

extern "C" {

const char *tare_version(void) { return TARE_VERSION; }

tare_engine_t *tare_engine_open(const char *path, const tare_options *options, tare_error *error) {
  return openWith(error, [&]() -> Result<std::shared_ptr<const tare::Engine>> {
    TARE_TRY(needed(path));
    return tare::Engine::open(path, copied(options));
  });
}
tare_engine_t *tare_engine_open_memory(const void *data, size_t bytes, const tare_options *options, tare_error *error) {
  return openWith(error, [&]() -> Result<std::shared_ptr<const tare::Engine>> {
    TARE_TRY(needed(data));
    return tare::Engine::fromMemory(data, bytes, copied(options));
  });
}
void tare_engine_close(tare_engine_t *engine) { delete engine; }

tare_status tare_engine_verify(const tare_engine_t *engine, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine));
    return engine->shared->file().verifyWeights();
  });
}
const char *tare_engine_level(const tare_engine_t *engine) { return engine ? engine->shared->level() : ""; }

int tare_engine_section(const tare_engine_t *engine, const char *name, const void **data, size_t *bytes) {
  if (!engine || !name || !data || !bytes) return 0;
  for (const tare::Section &section : engine->shared->file().sections())
    if (strcmp(tare::format::kindName(static_cast<uint32_t>(section.kind)), name) == 0) {
      *data = section.data, *bytes = static_cast<size_t>(section.bytes);
      return 1;
    }
  return 0;
}
size_t tare_engine_input_count(const tare_engine_t *engine) { return engine ? engine->shared->plan().inputs()->size() : 0; }
size_t tare_engine_output_count(const tare_engine_t *engine) { return engine ? engine->shared->plan().outputs()->size() : 0; }
tare_status tare_engine_input_info(const tare_engine_t *engine, size_t index, tare_tensor_info *out, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine));
    return info(engine->shared->plan(), *engine->shared->plan().inputs(), index, out);
  });
}
tare_status tare_engine_output_info(const tare_engine_t *engine, size_t index, tare_tensor_info *out, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine));
    return info(engine->shared->plan(), *engine->shared->plan().outputs(), index, out);
  });
}
tare_status tare_engine_estimate(const tare_engine_t *engine, const char *const *names, const tare_tensor *shapes, size_t count, tare_estimate *estimate, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine && estimate && (count == 0 || (names && shapes))));
    const tare::fb::Plan &plan = engine->shared->plan();
    tare::Binding binding(plan);
    TARE_TRY(bindFor(binding, plan, names, shapes, count));
    *estimate = {binding.dim(plan.full_flops()), binding.dim(plan.full_bytes()), binding.dim(plan.flops()), binding.dim(plan.bytes()), plan.zero_rate()};
    return {};
  });
}
tare_status tare_engine_check_memory(const tare_engine_t *engine, const char *const *names, const tare_tensor *shapes, size_t count, tare_check_memory *memory, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine && memory && (count == 0 || (names && shapes))));
    const tare::fb::Plan &plan = engine->shared->plan();
    tare::Binding binding(plan);
    TARE_TRY(bindFor(binding, plan, names, shapes, count));
    return tare::checkMemoryAt(plan, binding, *memory);
  });
}

tare_context_t *tare_context_create(tare_engine_t *engine, const tare_context_options *options, tare_error *error) {
  tare_context_t *context = nullptr;
  guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(engine));
    auto made = tare::Context::create(engine->shared, copied(options));
    if (!made) return std::move(made.error());
    context = new tare_context{std::move(*made)};
    return {};
  });
  return context;
}
void tare_context_destroy(tare_context_t *context) { delete context; }

tare_status tare_context_set_input(tare_context_t *context, const char *name, const tare_tensor *tensor, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && name));
    return context->own->setInput(name, tensor);
  });
}
tare_status tare_context_set_output(tare_context_t *context, const char *name, const tare_tensor *tensor, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && name));
    return context->own->setOutput(name, tensor);
  });
}
tare_status tare_context_request_outputs(tare_context_t *context, const char *const *names, size_t count, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    bool all = context && (count == 0 || names);
    for (size_t i = 0; all && i < count; ++i) all = names[i];
    TARE_TRY(needed(all));
    return context->own->requestOutputs(names, count);
  });
}
tare_status tare_context_run(tare_context_t *context, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context));
    return context->own->run();
  });
}
tare_status tare_context_get_output(tare_context_t *context, const char *name, tare_tensor *tensor, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && name && tensor));
    return context->own->getOutput(name, *tensor);
  });
}
void tare_context_cancel(tare_context_t *context) {
  if (context) context->own->cancel();
}
tare_status tare_context_link_state(tare_context_t *context, const char *input, const char *output, int64_t capacity, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && input && output));
    return context->own->linkState(input, output, capacity);
  });
}
tare_status tare_context_reset(tare_context_t *context) {
  if (!context) return TARE_USAGE;
  context->own->reset();
  return TARE_OK;
}
tare_status tare_context_estimate(tare_context_t *context, tare_estimate *estimate, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && estimate));
    return context->own->estimate(*estimate);
  });
}
tare_status tare_context_check_stats(tare_context_t *context, tare_check_stats *stats, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && stats));
    return context->own->checkStats(*stats);
  });
}
tare_status tare_context_check_bits(tare_context_t *context, size_t check, size_t element, uint32_t *bits, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && bits));
    auto found = context->own->checkBits(check, element);
    if (!found) return std::move(found.error());
    *bits = *found;
    return {};
  });
}
tare_status tare_context_check_memory(tare_context_t *context, tare_check_memory *memory, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && memory));
    return context->own->checkMemory(*memory);
  });
}
tare_status tare_context_trace_checks(tare_context_t *context, int on, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context));
    return context->own->traceChecks(on != 0);
  });
}
tare_status tare_context_check_trace(tare_context_t *context, size_t check, tare_check_trace *trace, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && trace));
    return context->own->checkTrace(check, *trace);
  });
}
size_t tare_context_step_count(const tare_context_t *context) { return context ? context->own->engine().plan().steps()->size() : 0; }
tare_status tare_context_step_info(tare_context_t *context, size_t index, tare_step_info *out, tare_error *error) {
  return guarded(error, [&]() -> Result<void> {
    TARE_TRY(needed(context && out));
    return context->own->stepInfo(index, *out);
  });
}
size_t tare_context_profile(tare_context_t *context, char *buffer, size_t capacity) { return context ? context->own->profile(buffer, buffer ? capacity : 0) : 0; }
size_t tare_context_metrics(tare_context_t *context, char *buffer, size_t capacity) { return context ? context->own->metrics(buffer, buffer ? capacity : 0) : 0; }
}
