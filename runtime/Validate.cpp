// Checks a plan from the outside in: structure, names, programs, tensors, buffers, steps with their data flow, states, constraints, code.
#include "runtime/Validate.h"
#include "runtime/dims.h"
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace tare {
namespace {
using flatbuffers::String;
using flatbuffers::Vector;

template <typename T> uint32_t count(const Vector<T> *vector) { return vector ? vector->size() : 0; }
Error bad(const char *text, const char *what, uint32_t index) { return Error::format(Status::Refused, text, "%s %u", what, index); }

class PlanCheck {
public:
  PlanCheck(const fb::Plan *plan, const PlanSurroundings &around) : plan(plan), around(around) {}
  Result<void> run() {
    TARE_TRY(checkSymbolsAndDims());
    TARE_TRY(checkTensors(plan->inputs(), "input"));
    TARE_TRY(checkTensors(plan->outputs(), "output"));
    TARE_TRY(checkBuffers());
    TARE_TRY(checkSteps());
    TARE_TRY(checkStates());
    TARE_TRY(checkChecks());
    TARE_TRY(checkConstraints());
    TARE_TRY(checkCode());
    return plan->cuda() ? validateCuda(*plan, around) : Result<void>();
  }

private:
  bool dim(uint32_t index) const { return index < plan->dims()->size(); }
  static bool name(const String *s) { return s && s->size() > 0 && s->size() <= format::kMaxName && strlen(s->c_str()) == s->size(); }
  static bool optionalName(const String *s) { return !s || (s->size() <= format::kMaxName && strlen(s->c_str()) == s->size()); }
  static bool limit(uint32_t n, uint32_t most) { return n <= most; }

  Result<void> checkSymbolsAndDims() {
    if (!limit(count(plan->symbols()), format::kMaxSymbols)) return Error(Status::Limit, "plan has too many symbols");
    for (uint32_t i = 0; i < plan->symbols()->size(); ++i)
      if (!name(plan->symbols()->Get(i))) return bad("plan has a bad name", "symbol", i);
    if (!limit(plan->dims()->size(), format::kMaxItems)) return Error(Status::Limit, "plan has too many dims");
    for (uint32_t i = 0; i < plan->dims()->size(); ++i) {
      auto *program = plan->dims()->Get(i);
      if (!optionalName(program->text())) return bad("plan has a bad name", "dim", i);
      if (const char *why = dims::checkProgram(program->code()->data(), program->code()->size(), plan->symbols()->size()))
        return Error::format(Status::Refused, "plan has a bad dim program", "dim %u: %s", i, why);
    }
    for (uint32_t index : {plan->full_flops(), plan->full_bytes(), plan->flops(), plan->bytes()})
      if (!dim(index)) return Error::format(Status::Refused, "plan has an index out of range", "estimate: dim %u of %u", index, plan->dims()->size());
    for (uint32_t i = 0; i < count(plan->pruned_layers()); ++i)
      if (!optionalName(plan->pruned_layers()->Get(i))) return bad("plan has a bad name", "pruned layer", i);
    return {};
  }

  Result<void> checkTensors(const Vector<flatbuffers::Offset<fb::Tensor>> *tensors, const char *what) {
    if (!limit(tensors->size(), format::kMaxTensors)) return Error(Status::Limit, "plan has too many inputs or outputs");
    std::vector<const char *> names;
    for (uint32_t i = 0; i < tensors->size(); ++i) {
      auto *tensor = tensors->Get(i);
      if (!name(tensor->name())) return bad("plan has a bad name", what, i);
      if (dtypeBytes(tensor->dtype()) == 0) return bad("plan has an unknown dtype", what, i);
      if (tensor->dims()->size() > format::kMaxRank) return bad("plan has a tensor of rank above 8", what, i);
      for (uint32_t index : *tensor->dims())
        if (!dim(index)) return bad("plan has an index out of range", what, i);
      const String *kind = tensor->default_kind();
      if (tensor->optional() && (!kind || !defaultKind(kind->c_str()))) return bad("plan has an unknown default", what, i);
      names.push_back(tensor->name()->c_str());
    }
    std::sort(names.begin(), names.end(), [](const char *a, const char *b) { return strcmp(a, b) < 0; });
    for (size_t i = 1; i < names.size(); ++i)
      if (strcmp(names[i - 1], names[i]) == 0) return Error::format(Status::Refused, "plan has two tensors of one name", "%s", names[i]);
    return {};
  }
  static bool defaultKind(const char *kind) {
    for (const char *known : {"ones", "zeros", "empty", "positions", "weight"})
      if (strcmp(kind, known) == 0) return true;
    return false;
  }

  static bool ownDefault(const fb::Tensor *tensor) { return tensor->optional() && strcmp(tensor->default_kind()->c_str(), "weight") == 0; }
  /// Of a tensor whose sizes are all constants; UINT64_MAX for any other.
  uint64_t constantBytes(const fb::Tensor *tensor) const {
    uint64_t bytes = dtypeBytes(tensor->dtype());
    for (uint32_t index : *tensor->dims()) {
      auto *code = plan->dims()->Get(index)->code();
      if (code->size() != 2 || code->Get(0) != dims::PushConstant || code->Get(1) < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(code->Get(1)), &bytes)) return UINT64_MAX;
    }
    return bytes;
  }

  Result<void> checkBuffers() {
    uint32_t steps = plan->steps()->size();
    if (!limit(plan->buffers()->size(), format::kMaxItems)) return Error(Status::Limit, "plan has too many buffers");
    if (!limit(steps, format::kMaxItems)) return Error(Status::Limit, "plan has too many steps");
    std::vector<uint8_t> inputs(plan->inputs()->size()), outputs(plan->outputs()->size()), defaults(plan->inputs()->size()),
        checks(plan->checks() ? plan->checks()->items()->size() : 0);
    for (uint32_t i = 0; i < plan->buffers()->size(); ++i) {
      auto *buffer = plan->buffers()->Get(i);
      if (!dim(buffer->bytes())) return bad("plan has an index out of range", "size of buffer", i);
      if (!optionalName(buffer->name())) return bad("plan has a bad name", "buffer", i);
      switch (buffer->kind()) {
      case fb::BufferKind::Input:
      case fb::BufferKind::Output: {
        auto &seen = buffer->kind() == fb::BufferKind::Input ? inputs : outputs;
        if (buffer->tensor() < 0 || static_cast<uint32_t>(buffer->tensor()) >= seen.size()) return bad("plan has an index out of range", "tensor of buffer", i);
        if (seen[static_cast<uint32_t>(buffer->tensor())]++) return bad("plan has two buffers for one tensor", "buffer", i);
        break;
      }
      case fb::BufferKind::Check:
        if (buffer->tensor() < 0 || static_cast<uint32_t>(buffer->tensor()) >= checks.size()) return bad("plan has an index out of range", "fidelity check of buffer", i);
        if (checks[static_cast<uint32_t>(buffer->tensor())]++) return bad("plan has two buffers for one fidelity check", "buffer", i);
        break;
      case fb::BufferKind::Weight: {
        auto *code = plan->dims()->Get(buffer->bytes())->code();
        uint64_t end;
        if (code->size() != 2 || code->Get(0) != dims::PushConstant || code->Get(1) < 0) return bad("plan has a weight of unknown size", "buffer", i);
        if (__builtin_add_overflow(buffer->offset(), static_cast<uint64_t>(code->Get(1)), &end) || end > around.weightBytes)
          return bad("plan has a weight outside of the weights section", "buffer", i);
        if (buffer->offset() % 64 != 0) return bad("plan has a misaligned weight", "buffer", i);
        if (buffer->tensor() < 0) break;
        auto input = static_cast<uint32_t>(buffer->tensor());
        if (input >= defaults.size()) return bad("plan has an index out of range", "tensor of buffer", i);
        if (!ownDefault(plan->inputs()->Get(input)) || defaults[input]++ || constantBytes(plan->inputs()->Get(input)) != static_cast<uint64_t>(code->Get(1)))
          return bad("plan has a weight that cannot be an input's default", "buffer", i);
        break;
      }
      case fb::BufferKind::Arena:
      case fb::BufferKind::PerThread:
        if (buffer->first_step() > buffer->last_step() || buffer->last_step() >= steps) return bad("plan has a bad lifetime", "buffer", i);
        break;
      default: return bad("plan has an unknown buffer kind", "buffer", i);
      }
    }
    for (uint32_t i = 0; i < defaults.size(); ++i)
      if (ownDefault(plan->inputs()->Get(i)) && !defaults[i]) return bad("plan has a default without a weight", "input", i);
    for (uint32_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i]) return bad("plan has an output without a buffer", "output", i);
    return {};
  }

  /// Every operand must have been written (or come from outside) before the step, every arena buffer must be alive in it.
  Result<void> checkSteps() {
    std::vector<uint8_t> written(plan->buffers()->size());
    for (uint32_t s = 0; s < plan->steps()->size(); ++s) {
      auto *step = plan->steps()->Get(s);
      if (!name(step->name()) || !name(step->kernel()) || !name(step->kind()) || !optionalName(step->layer())) return bad("plan has a bad name", "step", s);
      if (!dim(step->flops()) || !dim(step->bytes())) return bad("plan has an index out of range", "estimate of step", s);
      if (step->operand_count() > step->buffers()->size()) return bad("plan has more operands than buffers", "step", s);
      for (uint32_t i = 0; i < step->buffers()->size(); ++i) {
        uint32_t index = step->buffers()->Get(i);
        if (index >= plan->buffers()->size()) return bad("plan has an index out of range", "buffer of step", s);
        auto *buffer = plan->buffers()->Get(index);
        bool operand = i < step->operand_count(), inner = buffer->kind() == fb::BufferKind::Arena || buffer->kind() == fb::BufferKind::PerThread;
        if (inner && (s < buffer->first_step() || s > buffer->last_step())) return bad("plan uses a buffer outside of its lifetime", "step", s);
        if (operand && (inner || buffer->kind() == fb::BufferKind::Output) && !written[index]) return bad("plan reads a buffer before it is written", "step", s);
        if (!operand && (buffer->kind() == fb::BufferKind::Input || buffer->kind() == fb::BufferKind::Weight || buffer->kind() == fb::BufferKind::Check)) return bad("plan writes to an input or weight", "step", s);
      }
      for (uint32_t i = step->operand_count(); i < step->buffers()->size(); ++i) written[step->buffers()->Get(i)] = 1;
    }
    for (uint32_t i = 0; i < plan->buffers()->size(); ++i)
      if (plan->buffers()->Get(i)->kind() == fb::BufferKind::Output && !written[i]) return bad("plan never writes an output", "buffer", i);
    return {};
  }

  Result<void> checkStates() {
    if (!limit(plan->states()->size(), format::kMaxTensors)) return Error(Status::Limit, "plan has too many states");
    std::vector<uint8_t> inputs(plan->inputs()->size()), outputs(plan->outputs()->size()), capacity(plan->symbols()->size());
    for (uint32_t i = 0; i < plan->states()->size(); ++i) {
      auto *state = plan->states()->Get(i);
      if (state->input() >= inputs.size() || state->output() >= outputs.size() || state->input_capacity_symbol() >= capacity.size() ||
          state->output_capacity_symbol() >= capacity.size())
        return bad("plan has an index out of range", "state", i);
      auto *input = plan->inputs()->Get(state->input()), *output = plan->outputs()->Get(state->output());
      if (inputs[state->input()]++ || outputs[state->output()]++) return bad("plan has two states for one tensor", "state", i);
      if (capacity[state->input_capacity_symbol()]++ || capacity[state->output_capacity_symbol()]++) return bad("plan uses a capacity twice", "state", i);
      if (input->dtype() != output->dtype() || input->dims()->size() != output->dims()->size() || state->axis() >= input->dims()->size())
        return bad("plan has a state whose input and output differ", "state", i);
    }
    for (auto *tensors : {plan->inputs(), plan->outputs()}) // shapes are known before capacities are
      for (uint32_t i = 0; i < tensors->size(); ++i)
        for (uint32_t index : *tensors->Get(i)->dims()) {
          auto *code = plan->dims()->Get(index)->code();
          for (uint32_t word = 0; word < code->size(); word += 2)
            if (code->Get(word) == dims::PushSymbol && capacity[static_cast<size_t>(code->Get(word + 1))]) return bad("plan has a shape that depends on a capacity", "tensor", i);
        }
    return {};
  }

  /// The runtime reads anchors and mask itself, by what is said here.
  Result<void> checkChecks() {
    auto *checks = plan->checks();
    if (!checks) return {};
    if (!limit(checks->items()->size(), format::kMaxTensors)) return Error(Status::Limit, "plan has too many fidelity checks");
    for (uint32_t index : {checks->batch(), checks->tokens(), checks->past()})
      if (!dim(index)) return bad("plan has an index out of range", "size of the fidelity checks: dim", index);
    auto isMatrix = [&](uint32_t input) { return input < plan->inputs()->size() && plan->inputs()->Get(input)->dims()->size() == 2; };
    if (!isMatrix(checks->anchors())) return bad("plan has bad fidelity checks", "anchors: input", checks->anchors());
    auto *anchors = plan->inputs()->Get(checks->anchors());
    if (anchors->dtype() != fb::DType::I32 || !anchors->optional() || anchors->dims()->Get(0) != checks->batch()) return bad("plan has bad fidelity checks", "anchors: input", checks->anchors());
    if (checks->mask() >= 0) {
      auto mask = static_cast<uint32_t>(checks->mask());
      if (!isMatrix(mask) || plan->inputs()->Get(mask)->dims()->Get(0) != checks->batch()) return bad("plan has bad fidelity checks", "mask: input", mask);
    }
    if (checks->window() < 1 || checks->window() > format::kMaxItems) return bad("plan has bad fidelity checks", "window", checks->window());
    for (uint32_t i = 0; i < checks->items()->size(); ++i)
      if (checks->items()->Get(i)->heads() > 32 || !name(checks->items()->Get(i)->precision())) return bad("plan has bad fidelity checks", "check", i);
    return {};
  }

  Result<void> checkConstraints() {
    if (!limit(plan->constraints()->size(), format::kMaxItems)) return Error(Status::Limit, "plan has too many constraints");
    for (uint32_t i = 0; i < plan->constraints()->size(); ++i) {
      auto *constraint = plan->constraints()->Get(i);
      if (!dim(constraint->a()) || !dim(constraint->b())) return bad("plan has an index out of range", "constraint", i);
      if (constraint->kind() > fb::ConstraintKind::MAX) return bad("plan has an unknown constraint", "constraint", i);
      if (!name(constraint->message())) return bad("plan has a bad name", "constraint", i);
    }
    return {};
  }

  Result<void> checkCode() {
    if ((plan->code()->size() == 0 && !plan->cuda()) || plan->code()->size() > format::kMaxSections) return Error(Status::Refused, "plan names no code or too much of it");
    for (uint32_t i = 0; i < plan->code()->size(); ++i) {
      auto *code = plan->code()->Get(i);
      if (!name(code->level())) return bad("plan has a bad name", "code variant", i);
      if (code->section() >= around.sectionCount || around.codeSections[code->section()] == 0) return bad("plan names a section that is not code", "code variant", i);
      if (code->text_bytes() == 0 || code->text_bytes() > around.codeSections[code->section()]) return bad("plan has a bad code size", "code variant", i);
    }
    return {};
  }

  const fb::Plan *plan;
  const PlanSurroundings &around;
};
} // namespace

size_t dtypeBytes(fb::DType type) {
  switch (type) {
  case fb::DType::U8: case fb::DType::I8: case fb::DType::Bool: return 1;
  case fb::DType::U16: case fb::DType::I16: case fb::DType::F16: case fb::DType::BF16: return 2;
  case fb::DType::F32: case fb::DType::I32: case fb::DType::U32: return 4;
  case fb::DType::F64: case fb::DType::I64: case fb::DType::U64: return 8;
  default: return 0;
  }
}

const char *dtypeName(fb::DType type) {
  switch (type) {
  case fb::DType::F32: return "f32";
  case fb::DType::U8: return "u8";
  case fb::DType::I8: return "i8";
  case fb::DType::U16: return "u16";
  case fb::DType::I16: return "i16";
  case fb::DType::I32: return "i32";
  case fb::DType::I64: return "i64";
  case fb::DType::Bool: return "bool";
  case fb::DType::F16: return "f16";
  case fb::DType::F64: return "f64";
  case fb::DType::U32: return "u32";
  case fb::DType::U64: return "u64";
  case fb::DType::BF16: return "bf16";
  case fb::DType::U4: return "u4";
  case fb::DType::I4: return "i4";
  default: return "?";
  }
}

Result<const fb::Plan *> validatePlan(const uint8_t *data, uint64_t bytes, const PlanSurroundings &around) {
  if (bytes < 16 || bytes > format::kMaxPlanBytes) return Error::format(Status::Refused, "plan has a wrong size", "%llu bytes", static_cast<unsigned long long>(bytes));
  flatbuffers::Verifier verifier(data, static_cast<size_t>(bytes), 16, 8 * format::kMaxItems);
  if (!fb::VerifyPlanBuffer(verifier)) return Error(Status::Refused, "plan is not a valid FlatBuffers structure");
  const fb::Plan *plan = fb::GetPlan(data);
  TARE_TRY(PlanCheck(plan, around).run());
  return plan;
}

} // namespace tare
