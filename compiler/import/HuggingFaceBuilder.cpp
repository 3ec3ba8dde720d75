// Graph ops for the Hugging Face families: result types, node names, weights out of the checkpoint, and the final bookkeeping.
#include "compiler/import/HuggingFaceBuilder.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

namespace tare::huggingface {

Builder::Builder(MLIRContext &context, const Config &config, const Checkpoint &checkpoint, StringRef prefix)
    : config(config), f32(Float32Type::get(&context)), i64(IntegerType::get(&context, 64)), i1(IntegerType::get(&context, 1)), checkpoint(checkpoint), scope(prefix),
      module(ModuleOp::create(UnknownLoc::get(&context))), builder(&context) {
  builder.setInsertionPointToEnd(module->getBody());
  function = builder.create<func::FuncOp>(UnknownLoc::get(&context), "main", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
}

Builder::Scope::Scope(Builder &builder, const Twine &name) : builder(builder), before(builder.scope.size()) {
  if (!builder.scope.empty()) builder.scope += '.';
  builder.scope += name.str();
}

std::string Builder::path(StringRef name) const { return scope.empty() ? name.str() : name.empty() ? scope : scope + "." + name.str(); }

Location Builder::location(StringRef op) {
  std::string name;
  for (StringRef rest = scope; !rest.empty();) {
    auto [head, tail] = rest.split('.');
    // Exporters write list indices into their parent's segment: /encoder/layer.0/attention.
    name += (!head.empty() && llvm::all_of(head, llvm::isDigit) ? "." : "/") + head.str();
    rest = tail;
  }
  name += "/" + op.str();
  unsigned &count = names[name];
  std::string unique = count++ ? name + "_" + std::to_string(count - 1) : name;
  return NameLoc::get(builder.getStringAttr(unique));
}

template <typename Op, typename... Args> Value Builder::make(StringRef name, Type type, Args &&...args) {
  auto op = builder.create<Op>(location(name), type, std::forward<Args>(args)...);
  if (!scope.empty()) op->setAttr(graph::kScopeAttr, builder.getStringAttr(scope));
  return op.getResult();
}

Value Builder::input(StringRef name, Type element, ArrayRef<Dim> dims, StringRef defaultValue) {
  Value argument = function.getBody().front().addArgument(graph::tensorType(element, dims), NameLoc::get(builder.getStringAttr(name)));
  inputNames.push_back(builder.getStringAttr(name));
  defaults.push_back(builder.getStringAttr(defaultValue));
  return argument;
}

void Builder::output(StringRef name, Value value) {
  outputNames.push_back(builder.getStringAttr(name));
  results.push_back(value);
}

void Builder::require(const Dim &a, const Dim &atMost, StringRef message) {
  auto entry = [&](StringRef key, Attribute value) { return builder.getNamedAttr(key, value); };
  constraints.push_back(builder.getDictionaryAttr({entry("kind", builder.getStringAttr("at_most")), entry("a", graph::DimsAttr::get(builder.getContext(), {a})),
                                                   entry("b", graph::DimsAttr::get(builder.getContext(), {atMost})), entry("message", builder.getStringAttr(message))}));
}

bool Builder::has(StringRef name) const { return checkpoint.tensors.count(path(name)) != 0; }

Value Builder::weight(StringRef name, ArrayRef<int64_t> shape) {
  std::string full = path(name);
  if (Value known = constants.lookup(full)) return known;
  auto it = checkpoint.tensors.find(full);
  Type element = f32;
  bool good = it != checkpoint.tensors.end();
  if (!good) missing.insert(full);
  else {
    const TensorView &view = it->second;
    used.insert(full);
    if (view.dtype == 10) element = Float16Type::get(builder.getContext());
    else if (view.dtype == 16) element = BFloat16Type::get(builder.getContext());
    else if (view.dtype == 11) element = Float64Type::get(builder.getContext());
    else if (view.dtype != 1) good = false;
    if (!good || ArrayRef<int64_t>(view.shape) != shape) {
      auto text = [](ArrayRef<int64_t> s) { return "[" + llvm::join(llvm::map_range(s, [](int64_t d) { return std::to_string(d); }), ", ") + "]"; };
      misshapen.push_back(full + " is " + view.stored + " " + text(view.shape) + ", config.json asks for floating point " + text(shape));
      good = false;
    }
  }
  auto type = RankedTensorType::get(shape, good ? element : f32);
  ElementsAttr value;
  if (!good) value = DenseElementsAttr::get(type, Attribute(FloatAttr::get(f32, 0.0))); // never leaves: finish() refuses
  else if (type.getNumElements() <= 64) value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(it->second.bytes.data(), it->second.bytes.size()));
  else {
    // The mapping is kept alive by ImportedModel::storage; nothing is copied.
    auto blob = UnmanagedAsmResourceBlob::allocateWithAlign(ArrayRef<char>(it->second.bytes.data(), it->second.bytes.size()), 1);
    value = DenseResourceElementsAttr::get(type, full, std::move(blob));
  }
  // Constants go to the front of main: tied weights are used under several scopes.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  auto op = builder.create<graph::ConstantOp>(NameLoc::get(builder.getStringAttr(full)), type, builder.getStringAttr(full), value, UnitAttr());
  constants[full] = op;
  return op;
}

Value Builder::wide(Value value) { return cast(value, f32); }

Value Builder::scalar(double value) { return floats({float(value)}); }
Value Builder::floats(ArrayRef<float> values) {
  // One element means a scalar of rank 0.
  auto type = RankedTensorType::get(values.size() == 1 ? SmallVector<int64_t>{} : SmallVector<int64_t>{int64_t(values.size())}, f32);
  return make<graph::ConstantOp>("Constant", type, builder.getStringAttr(""), DenseElementsAttr::get(type, values), UnitAttr());
}

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// NumPy's broadcasting of symbolic dims: a 1 gives way, anything else must be equal (the families are built that way).
static Dims broadcast(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  Dims out(std::max(a.size(), b.size()), Dim(1));
  for (size_t i = 0; i < out.size(); ++i) {
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1), y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    out[out.size() - 1 - i] = x.isConstant(1) ? y : x;
  }
  return out;
}

Value Builder::unary(graph::UnaryKind kind, Value x) {
  std::string name = graph::stringifyUnaryKind(kind).str();
  return make<graph::UnaryOp>(name, x.getType(), graph::UnaryKindAttr::get(builder.getContext(), kind), x);
}

Value Builder::binary(graph::BinaryKind kind, Value a, Value b) {
  bool compares = kind >= graph::BinaryKind::Eq;
  std::string name = graph::stringifyBinaryKind(kind).str();
  return make<graph::BinaryOp>(name, graph::tensorType(compares ? i1 : elementOf(a), broadcast(graph::dimsOf(a), graph::dimsOf(b))),
                               graph::BinaryKindAttr::get(builder.getContext(), kind), a, b);
}

Value Builder::select(Value condition, Value a, Value b) {
  Dims dims = broadcast(graph::dimsOf(condition), broadcast(graph::dimsOf(a), graph::dimsOf(b)));
  return make<graph::SelectOp>("Where", graph::tensorType(elementOf(a), dims), condition, a, b);
}

Value Builder::cast(Value x, Type element) {
  if (elementOf(x) == element) return x;
  return make<graph::CastOp>("Cast", graph::tensorType(element, graph::dimsOf(x)), x);
}

Value Builder::reshape(Value x, ArrayRef<Dim> dims) { return make<graph::ReshapeOp>("Reshape", graph::tensorType(elementOf(x), dims), x); }
Value Builder::expand(Value x, ArrayRef<Dim> dims) { return make<graph::ExpandOp>("Expand", graph::tensorType(elementOf(x), dims), x); }

Value Builder::transpose(Value x, ArrayRef<int64_t> permutation) {
  Dims from = graph::dimsOf(x), to;
  for (int64_t p : permutation) to.push_back(from[p]);
  return make<graph::TransposeOp>("Transpose", graph::tensorType(elementOf(x), to), x, permutation);
}

Value Builder::slice(Value x, int64_t axis, const Dim &start, const Dim &length) {
  Dims dims = graph::dimsOf(x), starts(dims.size(), Dim(0));
  starts[axis] = start;
  dims[axis] = length;
  SmallVector<int64_t> steps(dims.size(), 1);
  return make<graph::SliceOp>("Slice", graph::tensorType(elementOf(x), dims), x, graph::DimsAttr::get(builder.getContext(), starts), steps);
}

Value Builder::concat(ArrayRef<Value> parts, int64_t axis) {
  Dims dims = graph::dimsOf(parts[0]);
  for (Value part : parts.drop_front()) dims[axis] = dims[axis] + graph::dimsOf(part)[axis];
  return make<graph::ConcatOp>("Concat", graph::tensorType(elementOf(parts[0]), dims), ValueRange(parts), axis);
}

Value Builder::gather(Value table, Value indices) {
  Dims dims = graph::dimsOf(indices), row = graph::dimsOf(table);
  dims.append(row.begin() + 1, row.end());
  return make<graph::GatherOp>("Gather", graph::tensorType(elementOf(table), dims), table, indices, int64_t(0));
}

Value Builder::range(const Dim &start, const Dim &length) {
  return make<graph::RangeOp>("Range", graph::tensorType(i64, {length}), graph::DimsAttr::get(builder.getContext(), {start, Dim(1)}));
}

Value Builder::cumsum(Value x, int64_t axis) { return make<graph::CumSumOp>("CumSum", x.getType(), x, axis, false, false); }

Value Builder::matmul(Value a, Value b) {
  Dims left = graph::dimsOf(a), right = graph::dimsOf(b);
  Dims batch = broadcast(ArrayRef<Dim>(left).drop_back(2), ArrayRef<Dim>(right).drop_back(2));
  batch.push_back(left[left.size() - 2]);
  batch.push_back(right.back());
  return make<graph::MatmulOp>("MatMul", graph::tensorType(f32, batch), a, b);
}

Value Builder::softmax(Value x) { return make<graph::SoftmaxOp>("Softmax", x.getType(), x, int64_t(graph::dimsOf(x).size() - 1), false); }

Value Builder::layerNorm(StringRef name, Value x) {
  Scope inner(*this, name);
  bool old = !has("weight") && has("gamma"); // converted from TensorFlow, e.g. bert-base-uncased
  Value scale = wide(weight(old ? "gamma" : "weight", {config.hidden})), bias = wide(weight(old ? "beta" : "bias", {config.hidden}));
  int64_t axis = int64_t(graph::dimsOf(x).size()) - 1;
  return make<graph::LayerNormOp>("LayerNormalization", x.getType(), x, scale, bias, builder.getI64IntegerAttr(axis), builder.getF64FloatAttr(config.epsilon));
}

Value Builder::rmsNorm(StringRef name, Value x) {
  Scope inner(*this, name);
  Dims dims = graph::dimsOf(x);
  Value scale = wide(weight("weight", {*dims.back().constant()}));
  return make<graph::RmsNormOp>("RMSNormalization", x.getType(), x, scale, builder.getI64IntegerAttr(int64_t(dims.size()) - 1), builder.getF64FloatAttr(config.epsilon));
}

Value Builder::linear(StringRef name, Value x, int64_t out, bool bias) {
  Scope inner(*this, name);
  int64_t in = *graph::dimsOf(x).back().constant();
  Value y = matmul(x, wide(transpose(weight("weight", {out, in}), {1, 0})));
  return bias ? add(y, wide(weight("bias", {out}))) : y;
}

Value Builder::activate(Value x) {
  graph::UnaryKind kind = config.activation == "gelu_tanh" ? graph::UnaryKind::GeluTanh : config.activation == "relu" ? graph::UnaryKind::Relu
                        : config.activation == "silu"      ? graph::UnaryKind::Silu     : graph::UnaryKind::GeluErf;
  return unary(kind, x);
}

Value Builder::splitHeads(Value x, int64_t heads) {
  Dims dims = graph::dimsOf(x);
  return transpose(reshape(x, {dims[0], dims[1], Dim(heads), Dim(*dims[2].constant() / heads)}), {0, 2, 1, 3});
}

Value Builder::attention(Value q, Value k, Value v, Value bias) {
  Dims dims = graph::dimsOf(q);
  double scale = 1.0 / std::sqrt(double(*dims[3].constant()));
  Value scores = add(mul(matmul(q, transpose(k, {0, 1, 3, 2})), scalar(scale)), bias);
  Value context = transpose(matmul(softmax(scores), v), {0, 2, 1, 3});
  return reshape(context, {dims[0], dims[2], dims[1] * dims[3]});
}

llvm::Expected<OwningOpRef<ModuleOp>> Builder::finish(std::vector<std::string> &warnings, uint64_t &parameters) {
  auto list = [](const auto &items) {
    std::string text;
    size_t shown = 0;
    for (const std::string &item : items) {
      if (shown++ == 20) { text += ", and " + std::to_string(items.size() - 20) + " more"; break; }
      text += (text.empty() ? "" : ", ") + item;
    }
    return text;
  };
  if (!missing.empty()) return refuse(std::to_string(missing.size()) + " tensors that config.json asks for are missing: " + list(missing)).inFile(config.file).ofTensor(*missing.begin());
  if (!misshapen.empty()) return refuse("tensors do not match config.json: " + list(misshapen)).inFile(config.file).ofTensor(StringRef(misshapen[0]).split(' ').first.str());
  std::vector<std::string> unused;
  for (const auto &[name, view] : checkpoint.tensors) {
    if (used.count(name)) parameters += view.bytes.size() / dtypeSize(view.dtype);
    else if (!StringRef(name).ends_with("position_ids") && !StringRef(name).ends_with("rotary_emb.inv_freq")) unused.push_back(name);
  }
  if (!unused.empty()) warnings.push_back("not used: " + list(unused));
  builder.create<func::ReturnOp>(UnknownLoc::get(builder.getContext()), results);
  Block &body = function.getBody().front();
  function.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, name] : llvm::enumerate(inputNames)) {
    function.setArgAttr(i, graph::kNameAttr, name);
    if (!llvm::cast<StringAttr>(defaults[i]).getValue().empty()) function.setArgAttr(i, graph::kDefaultAttr, defaults[i]);
  }
  for (auto [i, name] : llvm::enumerate(outputNames)) function.setResultAttr(i, graph::kNameAttr, name);
  if (!constraints.empty()) module.get()->setAttr(graph::kConstraintsAttr, builder.getArrayAttr(constraints));
  return std::move(module);
}
} // namespace tare::huggingface
