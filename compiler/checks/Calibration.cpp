// Reading and making of calibration samples (Calibration.h).
#include "compiler/checks/Calibration.h"
#include "compiler/checks/Random.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/TensorFiles.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <cstring>

using namespace mlir;
using tare::reference::Tensor;

namespace tare::checks {

std::string inputName(func::FuncOp main, unsigned argument) {
  if (auto name = main.getArgAttrOfType<StringAttr>(argument, graph::kNameAttr)) return name.str();
  return "input " + std::to_string(argument);
}

static StringRef defaultOf(func::FuncOp main, unsigned argument) {
  auto kind = main.getArgAttrOfType<StringAttr>(argument, graph::kDefaultAttr);
  return kind ? kind.getValue() : "";
}

// ---- random ----------------------------------------------------------------------------------------------------------------------------

/// Rows of the table that a Gather indexes with this value (through casts and reshapes); nothing when none does.
static std::optional<int64_t> tableRows(Value value, int depth = 4) {
  std::optional<int64_t> rows;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    std::optional<int64_t> found;
    if (auto gather = dyn_cast<graph::GatherOp>(user); gather && use.getOperandNumber() == 1) {
      int64_t size = gather.getX().getType().getDimSize(gather.getAxis());
      if (!ShapedType::isDynamic(size)) found = size;
    } else if (auto gather = dyn_cast<graph::GatherNDOp>(user); gather && use.getOperandNumber() == 1) {
      int64_t size = gather.getX().getType().getDimSize(gather.getBatchDims());
      if (!ShapedType::isDynamic(size)) found = size;
    } else if (depth > 0 && isa<graph::CastOp, graph::ReshapeOp, graph::ExpandOp, graph::SliceOp, graph::UnaryOp>(user) && user->getNumResults()) {
      found = tableRows(user->getResult(0), depth - 1);
    }
    if (found) rows = rows ? std::min(*rows, *found) : *found;
  }
  return rows;
}

static bool has(StringRef name, StringRef part) { return name.lower().find(part.lower()) != std::string::npos; }

/// Sizes for the symbols of the inputs: batch 1, past and sequence as the options say, within what the graph's constraints allow.
static reference::Symbols chooseSymbols(func::FuncOp main, const CompileOptions &options) {
  reference::Symbols symbols;
  auto constraints = main->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(graph::kConstraintsAttr);
  auto dimOf = [](DictionaryAttr d, StringRef key) -> std::optional<Dim> {
    auto dims = d.getAs<graph::DimsAttr>(key);
    return dims && dims.dims().size() == 1 ? std::optional<Dim>(dims.dims()[0]) : std::nullopt;
  };
  auto valueOf = [&](StringRef name) -> std::optional<int64_t> {
    auto at = symbols.find(name);
    return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
  };
  // A symbol that the constraints make equal to an expression of others follows them.
  std::vector<std::pair<std::string, Dim>> derived;
  for (Attribute entry : constraints ? constraints : ArrayAttr::get(main.getContext(), {})) {
    auto d = cast<DictionaryAttr>(entry);
    auto kind = d.getAs<StringAttr>("kind");
    auto a = dimOf(d, "a"), b = dimOf(d, "b");
    if (!kind || kind != "equal" || !a || !b) continue;
    for (auto [left, right] : {std::pair(*a, *b), std::pair(*b, *a)}) {
      auto names = left.symbols();
      if (names.size() == 1 && left == Dim::symbol(names[0]) && !(right == left) && llvm::none_of(derived, [&](auto &p) { return p.first == names[0]; })) {
        derived.push_back({names[0], right});
        break;
      }
    }
  }
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    Dims dims = graph::dimsOf(main.getArgument(i));
    for (size_t position = 0; position < dims.size(); ++position)
      for (const std::string &name : dims[position].symbols()) {
        bool isDerived = llvm::any_of(derived, [&](auto &p) { return p.first == name; });
        if (isDerived || symbols.count(name)) continue;
        symbols[name] = has(name, "batch") ? 1 : has(name, "past") && !has(name, "+") ? options.past : has(name, "seq") || has(name, "len") || position > 0 ? options.sequence : 1;
      }
  }
  for (int round = 0; round < 4; ++round)
    for (auto &[name, dim] : derived)
      if (auto value = dim.evaluate(valueOf)) symbols[name] = *value;
  // Limits such as sequence <= 512: the largest symbol of the left side gives way.
  for (Attribute entry : constraints ? constraints : ArrayAttr::get(main.getContext(), {})) {
    auto d = cast<DictionaryAttr>(entry);
    auto kind = d.getAs<StringAttr>("kind");
    auto a = dimOf(d, "a"), b = dimOf(d, "b");
    if (!kind || kind != "at_most" || !a || !b) continue;
    for (int guard = 0; guard < 1 << 16; ++guard) {
      auto left = a->evaluate(valueOf), right = b->evaluate(valueOf);
      if (!left || !right || *left <= *right) break;
      std::string largest;
      for (const std::string &name : a->symbols())
        if (largest.empty() || symbols[name] > symbols[largest]) largest = name;
      if (largest.empty() || symbols[largest] <= 1) break;
      --symbols[largest];
    }
  }
  return symbols;
}

static Tensor randomInput(func::FuncOp main, unsigned i, const reference::Symbols &symbols, Random &random) {
  auto type = cast<RankedTensorType>(main.getArgument(i).getType());
  std::vector<int64_t> shape;
  for (const Dim &d : graph::dimsOf(type)) {
    auto size = d.evaluate([&](StringRef name) -> std::optional<int64_t> {
      auto at = symbols.find(name);
      return at == symbols.end() ? std::nullopt : std::optional<int64_t>(at->second);
    });
    shape.push_back(std::max<int64_t>(size.value_or(1), 0));
  }
  Tensor t = Tensor::zeros(type.getElementType(), shape);
  std::string name = inputName(main, i);
  StringRef kind = defaultOf(main, i);
  auto rows = tableRows(main.getArgument(i));
  if (kind == "ones" || has(name, "mask"))
    t.floats.assign(t.floats.size(), 1), t.ints.assign(t.ints.size(), 1);
  else if (t.isFloat())
    for (double &v : t.floats) v = reference::roundTo(cast<FloatType>(t.element), random.normal());
  else if (kind == "positions" || has(name, "position"))
    for (size_t n = 0; n < t.ints.size(); ++n) t.ints[n] = static_cast<int64_t>(n) % (shape.empty() ? 1 : shape.back());
  else if (kind == "zeros" || has(name, "type"))
    ;
  else if (rows)
    for (int64_t &v : t.ints) v = random.below(*rows);
  else
    t.ints.assign(t.ints.size(), 1);
  return t;
}

// ---- files -----------------------------------------------------------------------------------------------------------------------------

static Type elementType(MLIRContext *context, uint8_t onnx) {
  Builder b(context);
  switch (onnx) {
  case 1: return b.getF32Type();
  case 2: return b.getIntegerType(8, false);
  case 3: return b.getIntegerType(8);
  case 4: return b.getIntegerType(16, false);
  case 5: return b.getIntegerType(16);
  case 6: return b.getI32Type();
  case 7: return b.getI64Type();
  case 9: return b.getI1Type();
  case 10: return b.getF16Type();
  case 11: return b.getF64Type();
  case 12: return b.getIntegerType(32, false);
  case 13: return b.getIntegerType(64, false);
  case 16: return b.getBF16Type();
  default: return {};
  }
}

static llvm::Expected<Tensor> fromArray(MLIRContext *context, const Array &array) {
  Type element = elementType(context, array.dtype);
  if (!element) return refuse("unsupported element type in calibration data");
  // Through a resource-free dense attribute of the raw bytes, so that there is one decoder only.
  auto type = RankedTensorType::get(array.shape, element);
  if (element.isInteger(1)) {
    Tensor t = Tensor::zeros(element, array.shape);
    for (size_t i = 0; i < t.ints.size(); ++i) t.ints[i] = array.bytes[i] != 0;
    return t;
  }
  Tensor t = Tensor::zeros(element, array.shape);
  if (t.elementCount() == 0) return t;
  return reference::decode(DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(array.bytes.data(), array.bytes.size())));
}

static bool readAnchors(const Array &array, std::vector<std::vector<int64_t>> &anchors) {
  if ((array.dtype != 6 && array.dtype != 7) || array.shape.size() != 2) return false;
  unsigned size = dtypeSize(array.dtype);
  const char *at = array.bytes.data();
  for (int64_t b = 0; b < array.shape[0]; ++b) {
    anchors.emplace_back();
    for (int64_t i = 0; i < array.shape[1]; ++i, at += size) {
      int64_t value = size == 4 ? llvm::support::endian::read32le(at) : llvm::support::endian::read64le(at);
      if (size == 4) value = static_cast<int32_t>(value);
      if (value < -1) return false;
      anchors.back().push_back(value);
    }
  }
  return true;
}

/// A state that grows while decoding: floating-point, with a size that no input of the sample binds. Left out, it is empty: a first pass.
static bool isCache(func::FuncOp main, unsigned argument, const Sample &sample) {
  auto type = cast<RankedTensorType>(main.getArgument(argument).getType());
  if (!isa<FloatType>(type.getElementType())) return false;
  for (const Dim &dim : graph::dimsOf(type))
    for (const std::string &symbol : dim.symbols()) {
      bool bound = false;
      for (unsigned i = 0; i < main.getNumArguments(); ++i)
        if (sample.arrays.count(inputName(main, i)))
          for (const Dim &other : graph::dimsOf(main.getArgument(i))) bound |= other == Dim::symbol(symbol);
      if (!bound) return true;
    }
  return false;
}

static llvm::Expected<Calibration> fromFiles(func::FuncOp main, const CompileOptions &options) {
  std::vector<std::string> files;
  auto read = readSamples(options.calibration, &files);
  if (!read) return read.takeError();
  Calibration calibration{"file", "", options.seed, {}, {}};
  if (read->empty()) return refuse("there is no sample in the calibration data").inFile(options.calibration);
  llvm::SHA256 hash;
  llvm::sort(files);
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file, false, false);
    if (!buffer) return fail(ExitCode::Io, "cannot read calibration data: " + buffer.getError().message()).inFile(file);
    hash.update((*buffer)->getBuffer());
  }
  calibration.sha256 = llvm::toHex(hash.final(), true);

  for (const Sample &sample : *read) {
    std::vector<Tensor> inputs;
    auto bad = [&](std::string what, std::string name) {
      return refuse("calibration " + sample.label + ": " + what).inFile(options.calibration).ofTensor(std::move(name)).withHint("the arrays must be named and shaped as the model's inputs");
    };
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      std::string name = inputName(main, i);
      auto at = sample.arrays.find(name);
      if (at == sample.arrays.end() && (!defaultOf(main, i).empty() || isCache(main, i, sample))) {
        inputs.push_back({}); // filled in below, when the sizes are known
        continue;
      }
      if (at == sample.arrays.end()) return bad("input '" + name + "' is missing", name);
      auto tensor = fromArray(main.getContext(), at->second);
      if (!tensor) return tensor.takeError();
      auto type = cast<RankedTensorType>(main.getArgument(i).getType());
      bool sameKind = tensor->isFloat() ? isa<FloatType>(type.getElementType()) : tensor->element == type.getElementType();
      if (!sameKind) return bad("input '" + name + "' has another element type than the model's", name);
      if (static_cast<int64_t>(tensor->shape.size()) != type.getRank())
        return bad("input '" + name + "' has rank " + std::to_string(tensor->shape.size()) + ", the model's has " + std::to_string(type.getRank()), name);
      tensor->element = type.getElementType();
      inputs.push_back(std::move(*tensor));
    }
    for (auto &[name, array] : sample.arrays) {
      bool known = name == "anchors";
      for (unsigned i = 0; i < main.getNumArguments(); ++i) known |= name == inputName(main, i);
      if (!known) return bad("the model has no input '" + name + "'", name);
    }
    // Optional inputs take their defaults at the sizes that the given ones bind.
    reference::Symbols symbols;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (inputs[i].element)
        for (auto [dim, size] : llvm::zip(graph::dimsOf(main.getArgument(i)), inputs[i].shape))
          if (auto names = dim.symbols(); names.size() == 1 && dim == Dim::symbol(names[0])) symbols.try_emplace(names[0], size);
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      for (const Dim &dim : graph::dimsOf(main.getArgument(i)))
        for (const std::string &name : dim.symbols()) symbols.try_emplace(name, 0);
    Random random(options.seed, 0);
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (!inputs[i].element) inputs[i] = randomInput(main, i, symbols, random);
    if (auto bound = reference::bindSymbols(main.getBody().front(), inputs); !bound) return bad(llvm::toString(bound.takeError()), "");
    calibration.samples.push_back(std::move(inputs));
    calibration.anchors.emplace_back();
    if (auto anchors = sample.arrays.find("anchors"); anchors != sample.arrays.end())
      if (!readAnchors(anchors->second, calibration.anchors.back())) return bad("'anchors' must be int32 or int64 [batch, A] of positions, -1 for padding", "anchors");
  }
  return calibration;
}

llvm::Expected<Calibration> loadCalibration(func::FuncOp main, const CompileOptions &options) {
  if (!options.calibration.empty()) return fromFiles(main, options);
  Calibration calibration{"random", "", options.seed, {}, {}};
  reference::Symbols symbols = chooseSymbols(main, options);
  for (int n = 0; n < options.samples; ++n) {
    Random random(options.seed, n);
    std::vector<Tensor> inputs;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) inputs.push_back(randomInput(main, i, symbols, random));
    calibration.samples.push_back(std::move(inputs));
  }
  return calibration;
}

} // namespace tare::checks
