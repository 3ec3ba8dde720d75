// Symbols are bound by the first given input whose dim is that symbol alone; every other given dim is then compared with its formula.
#include "runtime/Binding.h"
#include "runtime/dims.h"
#include <cstring>

namespace tare {
namespace {
using From = Shape::From;

/// A small text that is cut when full; no allocation.
struct Text {
  char data[200] = {0};
  size_t used = 0;
  [[gnu::format(printf, 2, 3)]] void add(const char *pattern, ...) {
    if (used + 1 >= sizeof data) return;
    va_list args;
    va_start(args, pattern);
    int n = vsnprintf(data + used, sizeof data - used, pattern, args);
    va_end(args);
    used = n < 0 || used + static_cast<size_t>(n) >= sizeof data ? sizeof data - 1 : used + static_cast<size_t>(n);
  }
};
Text shapeText(const Shape &shape) {
  Text text;
  text.add("[");
  for (int i = 0; i < shape.rank; ++i) text.add(i ? ", %lld" : "%lld", static_cast<long long>(shape.dims[i]));
  text.add("]");
  return text;
}
const char *dimText(const fb::DimProgram &dim) { return dim.text() ? dim.text()->c_str() : "?"; }
Text expectedText(const fb::Plan &plan, const fb::Tensor &tensor) {
  Text text;
  text.add("[");
  for (uint32_t i = 0; i < tensor.dims()->size(); ++i) text.add(i ? ", %s" : "%s", dimText(*plan.dims()->Get(tensor.dims()->Get(i))));
  text.add("]");
  return text;
}
/// The symbol that a program is, or -1.
int64_t onlySymbol(const fb::DimProgram &dim) {
  return dim.code()->size() == 2 && dim.code()->Get(0) == dims::PushSymbol ? dim.code()->Get(1) : -1;
}
bool evaluateProgram(const fb::DimProgram &dim, const int64_t *symbols, int64_t &result) {
  return dims::evaluate(dim.code()->data(), dim.code()->size(), symbols, result);
}
} // namespace

Binding::Binding(const fb::Plan &plan) : plan(plan), symbolValues(plan.symbols()->size()), dimValues(plan.dims()->size()), bound(plan.symbols()->size()) {}

bool Binding::value(uint32_t dim, int64_t &result) const { return evaluateProgram(*plan.dims()->Get(dim), symbolValues.data(), result); }

Result<void> Binding::checkAlone(const fb::Plan &plan, const fb::Tensor &tensor, const Shape &shape) {
  auto &dims = *tensor.dims();
  bool same = static_cast<uint32_t>(shape.rank) == dims.size();
  for (uint32_t i = 0; same && i < dims.size(); ++i) {
    auto &program = *plan.dims()->Get(dims.Get(i));
    same = program.code()->size() != 2 || program.code()->Get(0) != dims::PushConstant || program.code()->Get(1) == shape.dims[i];
  }
  if (same) return {};
  return Error(Error::format(Status::Refused, "input has a wrong shape", "given %s, expected %s", shapeText(shape).data, expectedText(plan, tensor).data)
                   .ofTensor(tensor.name()->c_str()));
}

Result<void> Binding::bindGiven(const Shape *shapes, bool allNeeded) {
  for (uint32_t i = 0; i < plan.inputs()->size(); ++i) {
    auto &tensor = *plan.inputs()->Get(i);
    if (allNeeded && shapes[i].from == From::Absent && !tensor.optional())
      return Error(Error(Status::Refused, "input is missing").ofTensor(tensor.name()->c_str()));
    if (shapes[i].from != From::Caller) continue;
    TARE_TRY(checkAlone(plan, tensor, shapes[i]));
    for (uint32_t d = 0; d < tensor.dims()->size(); ++d) {
      int64_t symbol = onlySymbol(*plan.dims()->Get(tensor.dims()->Get(d)));
      if (symbol < 0 || bound[static_cast<size_t>(symbol)]) continue;
      symbolValues[static_cast<size_t>(symbol)] = shapes[i].dims[d];
      bound[static_cast<size_t>(symbol)] = 1;
    }
  }
  return {};
}

/// Linked inputs bind the symbol of their axis to their length, empty ones to 0; an estimate takes 1 for the rest.
void Binding::bindLeftOut(const Shape *shapes, bool estimateOnly) {
  auto bindDim = [&](uint32_t dim, int64_t to) {
    int64_t symbol = onlySymbol(*plan.dims()->Get(dim));
    if (symbol < 0 || bound[static_cast<size_t>(symbol)]) return;
    symbolValues[static_cast<size_t>(symbol)] = to;
    bound[static_cast<size_t>(symbol)] = 1;
  };
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    auto &state = *plan.states()->Get(i);
    const Shape &shape = shapes[state.input()];
    uint32_t axisDim = plan.inputs()->Get(state.input())->dims()->Get(state.axis());
    if (shape.from == From::Linked) bindDim(axisDim, shape.dims[state.axis()]);
    if (shape.from == From::Absent) bindDim(axisDim, 0);
  }
  for (uint32_t i = 0; i < plan.inputs()->size(); ++i) {
    auto &tensor = *plan.inputs()->Get(i);
    if (shapes[i].from == From::Absent && tensor.optional() && strcmp(tensor.default_kind()->c_str(), "empty") == 0)
      for (uint32_t dim : *tensor.dims()) bindDim(dim, 0);
  }
  if (estimateOnly)
    for (size_t i = 0; i < bound.size(); ++i)
      if (!bound[i]) symbolValues[i] = 1, bound[i] = 1;
}

Result<void> Binding::bindCapacities(const LinkedCapacity *links) {
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    auto &state = *plan.states()->Get(i);
    int64_t input = 0, output = 0;
    if (links[i].linked)
      input = output = links[i].capacity;
    else if (!value(plan.inputs()->Get(state.input())->dims()->Get(state.axis()), input) || !value(plan.outputs()->Get(state.output())->dims()->Get(state.axis()), output))
      return Error(Error(Status::Refused, "size of a state cannot be computed").ofTensor(plan.inputs()->Get(state.input())->name()->c_str()));
    symbolValues[state.input_capacity_symbol()] = input;
    symbolValues[state.output_capacity_symbol()] = output;
    bound[state.input_capacity_symbol()] = bound[state.output_capacity_symbol()] = 1;
  }
  return {};
}

Result<void> Binding::compare(const fb::Tensor &tensor, const Shape &shape) const {
  Shape wanted = shape;
  bool same = true;
  for (uint32_t d = 0; d < tensor.dims()->size(); ++d) {
    if (!value(tensor.dims()->Get(d), wanted.dims[d])) wanted.dims[d] = -1;
    same = same && wanted.dims[d] == shape.dims[d];
  }
  if (same) return {};
  return Error(Error::format(Status::Refused, "input has a wrong shape", "given %s, expected %s = %s as the other inputs say", shapeText(shape).data,
                             expectedText(plan, tensor).data, shapeText(wanted).data)
                   .ofTensor(tensor.name()->c_str()));
}

Result<void> Binding::bind(const Shape *shapes, const LinkedCapacity *links, bool estimateOnly) {
  std::fill(bound.begin(), bound.end(), 0);
  std::fill(symbolValues.begin(), symbolValues.end(), 0);
  TARE_TRY(bindGiven(shapes, !estimateOnly));
  bindLeftOut(shapes, estimateOnly);
  TARE_TRY(bindCapacities(links));
  for (size_t i = 0; i < bound.size(); ++i)
    if (!bound[i])
      return Error::format(Status::Refused, "a size is not decided by the given inputs", "'%s'; give an input whose shape has it",
                           plan.symbols()->Get(static_cast<uint32_t>(i))->c_str());
  for (uint32_t i = 0; i < plan.inputs()->size(); ++i)
    if (shapes[i].from == From::Caller) TARE_TRY(compare(*plan.inputs()->Get(i), shapes[i]));
  for (uint32_t i = 0; i < plan.dims()->size(); ++i)
    if (!value(i, dimValues[i]))
      return Error::format(Status::Refused, "a size cannot be computed for these input shapes", "%s overflows or divides by zero", dimText(*plan.dims()->Get(i)));
  if (estimateOnly) return {};
  for (uint32_t i = 0; i < plan.constraints()->size(); ++i) {
    auto &c = *plan.constraints()->Get(i);
    int64_t a = dim(c.a()), b = dim(c.b());
    if (c.kind() == fb::ConstraintKind::Equal ? a == b : a <= b) continue;
    return Error::format(Status::Refused, "input shapes do not fit the model", "%s (%s = %lld, %s = %lld)", c.message()->c_str(), dimText(*plan.dims()->Get(c.a())),
                         static_cast<long long>(a), dimText(*plan.dims()->Get(c.b())), static_cast<long long>(b));
  }
  for (auto *tensors : {plan.inputs(), plan.outputs()})
    for (uint32_t i = 0; i < tensors->size(); ++i)
      for (uint32_t d : *tensors->Get(i)->dims())
        if (dim(d) < 0)
          return Error(Error::format(Status::Refused, "a size is negative for these input shapes", "%s = %lld", dimText(*plan.dims()->Get(d)), static_cast<long long>(dim(d)))
                           .ofTensor(tensors->Get(i)->name()->c_str()));
  return {};
}

namespace {
template <typename T> void fillOnes(void *data, uint64_t count, T one) {
  for (uint64_t i = 0; i < count; ++i) memcpy(static_cast<char *>(data) + i * sizeof(T), &one, sizeof(T));
}
} // namespace

void fillDefault(const fb::Tensor &tensor, const int64_t *dims, void *data) {
  uint32_t rank = tensor.dims()->size();
  uint64_t count = 1, last = rank ? static_cast<uint64_t>(dims[rank - 1]) : 1;
  for (uint32_t i = 0; i < rank; ++i) count *= static_cast<uint64_t>(dims[i]);
  size_t size = dtypeBytes(tensor.dtype());
  const char *kind = tensor.default_kind()->c_str();
  if (strcmp(kind, "positions") == 0) {
    for (uint64_t i = 0; i < count; ++i) {
      auto value = static_cast<int64_t>(i % last);
      float real = static_cast<float>(value);
      memcpy(static_cast<char *>(data) + i * size, tensor.dtype() == fb::DType::F32 ? static_cast<const void *>(&real) : &value, size);
    }
    return;
  }
  if (strcmp(kind, "ones") != 0) {
    memset(data, 0, count * size);
    return;
  }
  switch (tensor.dtype()) {
  case fb::DType::F32: return fillOnes(data, count, 1.0f);
  case fb::DType::F64: return fillOnes(data, count, 1.0);
  case fb::DType::F16: return fillOnes(data, count, uint16_t(0x3c00));
  case fb::DType::BF16: return fillOnes(data, count, uint16_t(0x3f80));
  default: break;
  }
  switch (size) {
  case 1: return fillOnes(data, count, uint8_t(1));
  case 2: return fillOnes(data, count, uint16_t(1));
  case 4: return fillOnes(data, count, uint32_t(1));
  default: return fillOnes(data, count, uint64_t(1));
  }
}

} // namespace tare
