// Evaluation and comparison for the shadow run (Shadow.h). In: arrays. Out: arrays, counts. NPZ arrays and reference tensors are converted here.
#include "tools/tare/Shadow.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/InputDefault.h"
#include "compiler/reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace tare::cli {

static Type elementType(MLIRContext *context, uint8_t dtype) {
  Builder b(context);
  switch (dtype) {
  case 1: return b.getF32Type();
  case 10: return b.getF16Type();
  case 11: return b.getF64Type();
  case 16: return b.getBF16Type();
  case 9: return b.getI1Type();
  case 3: return b.getIntegerType(8);
  case 5: return b.getIntegerType(16);
  case 6: return b.getI32Type();
  case 7: return b.getI64Type();
  case 2: return b.getIntegerType(8, false);
  case 4: return b.getIntegerType(16, false);
  case 12: return b.getIntegerType(32, false);
  default: return b.getIntegerType(64, false);
  }
}
static uint8_t dtypeOf(Type type) {
  if (type.isF32()) return 1;
  if (type.isF16()) return 10;
  if (type.isF64()) return 11;
  if (type.isBF16()) return 16;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1: return 9;
  case 8: return isUnsigned ? 2 : 3;
  case 16: return isUnsigned ? 4 : 5;
  case 32: return isUnsigned ? 12 : 6;
  default: return isUnsigned ? 13 : 7;
  }
}

template <typename T> static T load(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
/// One element as double (floats) or int64 (integers).
static double floatAt(const Array &a, size_t i) {
  const char *at = a.bytes.data() + i * dtypeSize(a.dtype);
  switch (a.dtype) {
  case 1: return load<float>(at);
  case 11: return load<double>(at);
  case 16: return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(at)) << 16);
  default: {
    llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, load<uint16_t>(at)));
    bool lost;
    half.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return half.convertToDouble();
  }
  }
}
static int64_t integerAt(const Array &a, size_t i) {
  const char *at = a.bytes.data() + i * dtypeSize(a.dtype);
  switch (a.dtype) {
  case 9: case 2: return load<uint8_t>(at);
  case 3: return load<int8_t>(at);
  case 4: return load<uint16_t>(at);
  case 5: return load<int16_t>(at);
  case 6: return load<int32_t>(at);
  case 12: return load<uint32_t>(at);
  default: return load<int64_t>(at);
  }
}
static bool isFloat(uint8_t dtype) { return dtype == 1 || dtype == 10 || dtype == 11 || dtype == 16; }
static size_t countOf(const Array &a) { return a.bytes.size() / dtypeSize(a.dtype); }

static reference::Tensor toTensor(MLIRContext *context, const Array &array) {
  reference::Tensor t;
  t.element = elementType(context, array.dtype), t.shape = array.shape;
  for (size_t i = 0; i < countOf(array); i++) isFloat(array.dtype) ? t.floats.push_back(floatAt(array, i)) : t.ints.push_back(integerAt(array, i));
  return t;
}

/// Floats keep float32's range of values: the comparison's tolerance is wider than what a narrower dtype would lose.
static Array toArray(const reference::Tensor &t) {
  Array a{static_cast<uint8_t>(t.isFloat() ? 1 : dtypeOf(t.element)), t.shape, {}};
  size_t size = dtypeSize(a.dtype);
  a.bytes.resize(size * static_cast<size_t>(t.elementCount()));
  for (size_t i = 0; i < a.bytes.size() / size; i++) {
    float value = t.isFloat() ? static_cast<float>(t.floats[i]) : 0;
    std::memcpy(a.bytes.data() + i * size, t.isFloat() ? static_cast<const void *>(&value) : &t.ints[i], size);
  }
  return a;
}

void Comparison::add(const Comparison &o) {
  elements += o.elements, violations += o.violations, changedArgmax += o.changedArgmax, largest = std::max(largest, o.largest);
}

/// The tolerance, relative to 1 and to the largest element: four unit roundoffs of f16 (2^-11), five of bf16 (2^-8). TF32 has f16's eleven significant bits.
static double stepOf(int32_t dtype, llvm::StringRef precision) {
  if (dtype == 16 || precision == "bf16") return 2e-2;
  if (dtype == 10 || precision == "f16" || precision == "tf32") return 2e-3;
  return 1e-4;
}

static Comparison compareFloats(const Array &expected, const Array &actual, llvm::StringRef precision) {
  Comparison c;
  size_t count = countOf(expected);
  double most = 0;
  for (size_t i = 0; i < count; i++)
    if (double v = std::abs(floatAt(expected, i)); std::isfinite(v)) most = std::max(most, v);
  double step = stepOf(actual.dtype, precision), tolerance = step + step * most;
  size_t row = expected.shape.empty() || expected.shape.back() <= 0 ? 1 : static_cast<size_t>(expected.shape.back());
  c.elements = static_cast<int64_t>(count);
  for (size_t begin = 0; begin + row <= count; begin += row) {
    size_t bestExpected = begin, bestActual = begin;
    int64_t before = c.violations;
    for (size_t i = begin; i < begin + row; i++) {
      double e = floatAt(expected, i), a = floatAt(actual, i);
      if (e > floatAt(expected, bestExpected)) bestExpected = i;
      if (a > floatAt(actual, bestActual)) bestActual = i;
      if (std::isnan(e) && std::isnan(a)) continue;
      if (e == a) continue;
      double difference = std::abs(e - a);
      if (std::isfinite(difference)) c.largest = std::max(c.largest, difference);
      if (!(difference <= tolerance)) c.violations++;
    }
    // Among elements that the source itself makes equal, any one is the largest; every other change counts, however close the two are (spec 12).
    // It makes one element of the row a violation, when the row has none yet: a rate never exceeds 100%.
    if (floatAt(expected, bestExpected) > floatAt(expected, bestActual)) c.changedArgmax++, c.violations = std::max(c.violations, before + 1);
  }
  return c;
}

Comparison compareArrays(const Array &expected, const Array &actual, llvm::StringRef precision) {
  if (isFloat(expected.dtype)) return compareFloats(expected, actual, precision);
  Comparison c;
  c.elements = static_cast<int64_t>(countOf(expected));
  for (size_t i = 0; i < countOf(expected); i++)
    if (integerAt(expected, i) != integerAt(actual, i)) c.violations++, c.largest = std::max(c.largest, std::abs(static_cast<double>(integerAt(expected, i) - integerAt(actual, i))));
  return c;
}

static func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }
std::vector<std::string> resultNames(ModuleOp module) {
  std::vector<std::string> names;
  auto main = mainOf(module);
  for (unsigned i = 0; i < main.getNumResults(); i++) {
    auto name = main.getResultAttrOfType<StringAttr>(i, graph::kNameAttr);
    names.push_back(name ? name.str() : "output " + std::to_string(i));
  }
  return names;
}
std::vector<std::string> argumentNames(ModuleOp module) {
  std::vector<std::string> names;
  auto main = mainOf(module);
  for (unsigned i = 0; i < main.getNumArguments(); i++) {
    auto name = main.getArgAttrOfType<StringAttr>(i, graph::kNameAttr);
    names.push_back(name ? name.str() : "input " + std::to_string(i));
  }
  return names;
}

/// An input that was left out: its default at the shape that the given inputs bind.
static llvm::Expected<reference::Tensor> defaultInput(func::FuncOp main, unsigned index, const std::string &name, const llvm::StringMap<int64_t> &symbols) {
  auto kind = main.getArgAttrOfType<StringAttr>(index, graph::kDefaultAttr);
  if (!kind) return refuse("the source needs the input " + name).ofTensor(name);
  if (auto own = main.getArgAttrOfType<ElementsAttr>(index, graph::kDefaultValueAttr)) return reference::decode(own);
  auto type = llvm::cast<RankedTensorType>(main.getArgument(index).getType());
  std::vector<int64_t> shape;
  for (auto &dim : graph::dimsOf(type)) {
    auto size = dim.evaluate([&](llvm::StringRef s) -> std::optional<int64_t> {
      auto found = symbols.find(s);
      return found != symbols.end() ? found->second : s.contains_insensitive("past") ? 0 : 1;
    });
    shape.push_back(size.value_or(1));
  }
  auto tensor = reference::Tensor::zeros(type.getElementType(), shape);
  int64_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  for (size_t i = 0; i < tensor.ints.size(); i++) tensor.ints[i] = kind.getValue() == "ones" ? 1 : kind.getValue() == "positions" ? static_cast<int64_t>(i) % row : 0;
  if (kind.getValue() == "ones") std::fill(tensor.floats.begin(), tensor.floats.end(), 1.0);
  return tensor;
}

llvm::Error exposeInputs(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createExposeOverridablesPass());
  if (succeeded(manager.run(module))) return llvm::Error::success();
  return fail(ExitCode::Internal, "the source's overridable initializers cannot be made inputs");
}

llvm::Expected<ArrayMap> evaluateSource(ModuleOp module, const ArrayMap &inputs, const std::map<std::string, Value> &extra) {
  auto main = mainOf(module);
  auto names = argumentNames(module);
  llvm::StringMap<int64_t> symbols;
  for (unsigned i = 0; i < names.size(); i++) {
    auto given = inputs.find(names[i]);
    if (given == inputs.end()) continue;
    Dims dims = graph::dimsOf(main.getArgument(i));
    for (size_t d = 0; d < dims.size() && d < given->second.shape.size(); d++)
      if (auto list = dims[d].symbols(); list.size() == 1 && list.front() == dims[d].str()) symbols[list.front()] = given->second.shape[d];
  }
  std::vector<reference::Tensor> tensors;
  for (unsigned i = 0; i < names.size(); i++) {
    auto given = inputs.find(names[i]);
    if (given != inputs.end()) {
      tensors.push_back(toTensor(module.getContext(), given->second));
      // Unsigned and signless integers share their bits; the graph's own type decides.
      tensors.back().element = llvm::cast<RankedTensorType>(main.getArgument(i).getType()).getElementType();
      continue;
    }
    auto tensor = defaultInput(main, i, names[i], symbols);
    if (!tensor) return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  llvm::DenseSet<Value> keep; // outputs are kept anyway; all else goes after its last reader
  for (auto &[name, value] : extra) keep.insert(value);
  reference::EvaluateOptions how;
  how.largest = 0, how.keep = &keep;
  auto values = reference::evaluate(main.getBody().front(), tensors, how);
  if (!values) return values.takeError();
  ArrayMap outputs;
  auto results = resultNames(module);
  Operation *terminator = main.getBody().front().getTerminator();
  for (unsigned i = 0; i < results.size(); i++) outputs[results[i]] = toArray(values->lookup(terminator->getOperand(i)));
  for (auto &[name, value] : extra) outputs[name] = toArray(values->lookup(value));
  return outputs;
}

llvm::Expected<ArrayMap> runEngine(const EngineHandle &engine, const ArrayMap &inputs) {
  auto request = Request::create(engine, 0, false);
  if (!request) return request.takeError();
  for (auto &[name, array] : inputs)
    if (auto error = request->set(name, array)) return error;
  if (auto error = request->run()) return error;
  ArrayMap outputs;
  for (auto &info : engine.outputs()) {
    auto array = request->output(info.name);
    if (!array) return array.takeError();
    outputs[info.name] = std::move(*array);
  }
  return outputs;
}

} // namespace tare::cli
