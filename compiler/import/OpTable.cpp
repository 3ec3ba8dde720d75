// The op table. Versions are facts of the ONNX operator specification; `newest` is raised only after reading what a new version changed.
#include "compiler/import/OpTable.h"
#include "compiler/import/ops/Ops.h"

namespace tare {
using K = graph::BinaryKind;
using U = graph::UnaryKind;
using R = graph::ReduceKind;

/// A static array of the versions, so that a row can point to it.
template <int... N> inline constexpr int kVersions[] = {N...};
template <int... N> inline constexpr llvm::ArrayRef<int> v = llvm::ArrayRef<int>(kVersions<N...>);

// domain, name, since_versions, newest supported, inputs (min, max), outputs (max), importer
static const OpRow kTable[] = {
    {"", "Abs", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Abs>},
    {"", "Acos", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Acos>},
    {"", "Add", v<1, 6, 7, 13, 14>, 14, 2, 2, 1, ops::binaryOp<K::Add>},
    {"", "And", v<1, 7>, 7, 2, 2, 1, ops::binaryOp<K::And>},
    {"", "ArgMax", v<1, 11, 12, 13>, 13, 1, 1, 1, ops::argOp<R::ArgMax>},
    {"", "ArgMin", v<1, 11, 12, 13>, 13, 1, 1, 1, ops::argOp<R::ArgMin>},
    {"", "Asin", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Asin>},
    {"", "Atan", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Atan>},
    {"", "Cast", v<1, 6, 9, 13, 19, 21, 23, 24, 25, 28>, 28, 1, 1, 1, ops::castOp},
    {"", "CastLike", v<15, 19, 21, 23, 24, 25>, 25, 2, 2, 1, ops::castLike},
    {"", "Ceil", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Ceil>},
    {"", "Celu", v<12, 28>, 28, 1, 1, 1, ops::celu},
    {"", "Clip", v<1, 6, 11, 12, 13>, 13, 1, 3, 1, ops::clip},
    {"", "Concat", v<1, 4, 11, 13>, 13, 1, kVariadic, 1, ops::concat},
    {"", "Constant", v<1, 9, 11, 12, 13, 19, 21, 23, 24, 25>, 25, 0, 0, 1, ops::constant},
    {"", "ConstantOfShape", v<9, 20, 21, 23, 24, 25>, 25, 1, 1, 1, ops::constantOfShape},
    {"", "Cos", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Cos>},
    {"", "Cosh", v<9, 22>, 22, 1, 1, 1, ops::unaryOp<U::Cosh>},
    {"", "CumSum", v<11, 14>, 14, 2, 2, 1, ops::cumSum},
    {"", "DequantizeLinear", v<10, 13, 19, 21, 23, 24, 25, 28>, 28, 2, 3, 1, ops::dequantizeLinear},
    {"", "Div", v<1, 6, 7, 13, 14>, 14, 2, 2, 1, ops::binaryOp<K::Div>},
    {"", "Dropout", v<1, 6, 7, 10, 12, 13, 22>, 22, 1, 3, 2, ops::dropout},
    {"", "Elu", v<1, 6, 22>, 22, 1, 1, 1, ops::elu},
    {"", "Equal", v<1, 7, 11, 13, 19>, 19, 2, 2, 1, ops::binaryOp<K::Eq>},
    {"", "Erf", v<9, 13>, 13, 1, 1, 1, ops::unaryOp<U::Erf>},
    {"", "Exp", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Exp>},
    {"", "Expand", v<8, 13>, 13, 2, 2, 1, ops::expand},
    {"", "Flatten", v<1, 9, 11, 13, 21, 23, 24, 25>, 25, 1, 1, 1, ops::flatten},
    {"", "Floor", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Floor>},
    {"", "Gather", v<1, 11, 13>, 13, 2, 2, 1, ops::gather},
    {"", "GatherElements", v<11, 13>, 13, 2, 2, 1, ops::gatherElements},
    {"", "GatherND", v<11, 12, 13>, 13, 2, 2, 1, ops::gatherND},
    {"", "Gelu", v<20>, 20, 1, 1, 1, ops::gelu},
    {"", "Gemm", v<1, 6, 7, 9, 11, 13>, 13, 2, 3, 1, ops::gemm},
    {"", "Greater", v<1, 7, 9, 13>, 13, 2, 2, 1, ops::binaryOp<K::Gt>},
    {"", "GreaterOrEqual", v<12, 16>, 16, 2, 2, 1, ops::binaryOp<K::Ge>},
    {"", "HardSigmoid", v<1, 6, 22>, 22, 1, 1, 1, ops::hardSigmoid},
    {"", "HardSwish", v<14, 22>, 22, 1, 1, 1, ops::hardSwish},
    {"", "Identity", v<1, 13, 14, 16, 19, 21, 23, 24, 25>, 25, 1, 1, 1, ops::identity},
    {"", "IsInf", v<10, 20>, 20, 1, 1, 1, ops::isInf},
    {"", "IsNaN", v<9, 13, 20>, 20, 1, 1, 1, ops::unaryOp<U::IsNaN>},
    {"", "LayerNormalization", v<17>, 17, 2, 3, 3, ops::layerNorm},
    {"", "LeakyRelu", v<1, 6, 16>, 16, 1, 1, 1, ops::leakyRelu},
    {"", "Less", v<1, 7, 9, 13>, 13, 2, 2, 1, ops::binaryOp<K::Lt>},
    {"", "LessOrEqual", v<12, 16>, 16, 2, 2, 1, ops::binaryOp<K::Le>},
    {"", "Log", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Log>},
    {"", "LogSoftmax", v<1, 11, 13>, 13, 1, 1, 1, ops::logSoftmax},
    {"", "MatMul", v<1, 9, 13>, 13, 2, 2, 1, ops::matmul},
    {"", "Max", v<1, 6, 8, 12, 13>, 13, 1, kVariadic, 1, ops::chain<K::Max>},
    {"", "Mean", v<1, 6, 8, 13>, 13, 1, kVariadic, 1, ops::mean},
    {"", "Min", v<1, 6, 8, 12, 13>, 13, 1, kVariadic, 1, ops::chain<K::Min>},
    {"", "Mish", v<18, 22>, 22, 1, 1, 1, ops::mish},
    {"", "Mod", v<10, 13, 28>, 28, 2, 2, 1, ops::mod},
    {"", "Mul", v<1, 6, 7, 13, 14>, 14, 2, 2, 1, ops::binaryOp<K::Mul>},
    {"", "Neg", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Neg>},
    {"", "Not", v<1>, 1, 1, 1, 1, ops::unaryOp<U::Not>},
    {"", "Or", v<1, 7>, 7, 2, 2, 1, ops::binaryOp<K::Or>},
    {"", "PRelu", v<1, 6, 7, 9, 16>, 16, 2, 2, 1, ops::pRelu},
    {"", "Pad", v<1, 2, 11, 13, 18, 19, 21, 23, 24, 25>, 25, 1, 4, 1, ops::pad},
    {"", "Pow", v<1, 7, 12, 13, 15>, 15, 2, 2, 1, ops::binaryOp<K::Pow>},
    {"", "RMSNormalization", v<23>, 23, 2, 2, 1, ops::rmsNorm},
    {"", "Range", v<11, 27>, 27, 3, 3, 1, ops::range},
    {"", "Reciprocal", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Reciprocal>},
    {"", "ReduceL1", v<1, 11, 13, 18>, 18, 1, 2, 1, ops::reduceOp<R::L1>},
    {"", "ReduceL2", v<1, 11, 13, 18>, 18, 1, 2, 1, ops::reduceOp<R::L2>},
    {"", "ReduceLogSum", v<1, 11, 13, 18, 28>, 28, 1, 2, 1, ops::reduceOp<R::LogSum>},
    {"", "ReduceLogSumExp", v<1, 11, 13, 18, 28>, 28, 1, 2, 1, ops::reduceOp<R::LogSumExp>},
    {"", "ReduceMax", v<1, 11, 12, 13, 18, 20>, 20, 1, 2, 1, ops::reduceOp<R::Max>},
    {"", "ReduceMean", v<1, 11, 13, 18>, 18, 1, 2, 1, ops::reduceOp<R::Mean>},
    {"", "ReduceMin", v<1, 11, 12, 13, 18, 20>, 20, 1, 2, 1, ops::reduceOp<R::Min>},
    {"", "ReduceProd", v<1, 11, 13, 18>, 18, 1, 2, 1, ops::reduceOp<R::Prod>},
    {"", "ReduceSum", v<1, 11, 13>, 13, 1, 2, 1, ops::reduceOp<R::Sum>},
    {"", "ReduceSumSquare", v<1, 11, 13, 18>, 18, 1, 2, 1, ops::reduceOp<R::SumSquare>},
    {"", "Relu", v<1, 6, 13, 14>, 14, 1, 1, 1, ops::unaryOp<U::Relu>},
    {"", "Reshape", v<1, 5, 13, 14, 19, 21, 23, 24, 25>, 25, 2, 2, 1, ops::reshape},
    {"", "Round", v<11, 22>, 22, 1, 1, 1, ops::unaryOp<U::Round>},
    {"", "Selu", v<1, 6, 22>, 22, 1, 1, 1, ops::selu},
    {"", "Shape", v<1, 13, 15, 19, 21, 23, 24, 25>, 25, 1, 1, 1, ops::shape},
    {"", "Sigmoid", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Sigmoid>},
    {"", "Sign", v<9, 13>, 13, 1, 1, 1, ops::unaryOp<U::Sign>},
    {"", "Sin", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Sin>},
    {"", "Sinh", v<9, 22>, 22, 1, 1, 1, ops::unaryOp<U::Sinh>},
    {"", "Size", v<1, 13, 19, 21, 23, 24, 25>, 25, 1, 1, 1, ops::size},
    {"", "Slice", v<1, 10, 11, 13>, 13, 1, 5, 1, ops::slice},
    {"", "Softmax", v<1, 11, 13>, 13, 1, 1, 1, ops::softmax},
    {"", "Softplus", v<1, 22>, 22, 1, 1, 1, ops::unaryOp<U::Softplus>},
    {"", "Softsign", v<1, 22>, 22, 1, 1, 1, ops::softsign},
    {"", "Split", v<1, 2, 11, 13, 18>, 18, 1, 2, kVariadic, ops::split},
    {"", "Sqrt", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Sqrt>},
    {"", "Squeeze", v<1, 11, 13, 21, 23, 24, 25>, 25, 1, 2, 1, ops::squeeze},
    {"", "Sub", v<1, 6, 7, 13, 14>, 14, 2, 2, 1, ops::binaryOp<K::Sub>},
    {"", "Sum", v<1, 6, 8, 13>, 13, 1, kVariadic, 1, ops::chain<K::Add>},
    {"", "Swish", v<24>, 24, 1, 1, 1, ops::swish},
    {"", "Tan", v<7, 22>, 22, 1, 1, 1, ops::unaryOp<U::Tan>},
    {"", "Tanh", v<1, 6, 13>, 13, 1, 1, 1, ops::unaryOp<U::Tanh>},
    {"", "ThresholdedRelu", v<10, 22>, 22, 1, 1, 1, ops::thresholdedRelu},
    {"", "Tile", v<1, 6, 13>, 13, 2, 2, 1, ops::tile},
    {"", "Transpose", v<1, 13, 21, 23, 24, 25>, 25, 1, 1, 1, ops::transpose},
    {"", "Trilu", v<14>, 14, 1, 2, 1, ops::trilu},
    {"", "Unsqueeze", v<1, 11, 13, 21, 23, 24, 25>, 25, 1, 2, 1, ops::unsqueeze},
    {"", "Where", v<9, 16>, 16, 3, 3, 1, ops::where},
    {"", "Xor", v<1, 7>, 7, 2, 2, 1, ops::binaryOp<K::Xor>},
    {"tare", "FidelityCheck", v<1>, 1, 5, 5, 1, ops::fidelityCheck},
};

llvm::ArrayRef<OpRow> opTable() { return kTable; }

std::string describeOpTable() {
  std::string text = "| operator | domain | versions | supported up to | inputs | outputs |\n| --- | --- | --- | --- | --- | --- |\n";
  auto count = [](unsigned n) { return n == kVariadic ? std::string("any") : std::to_string(n); };
  for (auto &row : kTable) {
    std::string versions;
    for (int since : row.since) versions += (versions.empty() ? "" : ", ") + std::to_string(since);
    std::string inputs = row.minInputs == row.maxInputs ? count(row.minInputs) : count(row.minInputs) + " to " + count(row.maxInputs);
    text += std::string("| ") + row.name + " | " + (*row.domain ? row.domain : "ai.onnx") + " | " + versions + " | " + std::to_string(row.newest) + " | " + inputs + " | " + count(row.maxOutputs) + " |\n";
  }
  return text;
}

llvm::StringRef normalDomain(llvm::StringRef domain) { return domain == "ai.onnx" ? llvm::StringRef("") : domain; }

OpLookup lookUp(llvm::StringRef domain, llvm::StringRef name, int64_t opset) {
  domain = normalDomain(domain);
  // The table is sorted (a test checks it): a model may have a million nodes.
  auto key = [](const OpRow &r) { return std::pair(llvm::StringRef(r.domain), llvm::StringRef(r.name)); };
  auto *at = std::lower_bound(std::begin(kTable), std::end(kTable), std::pair(domain, name), [&](const OpRow &r, auto &wanted) { return key(r) < wanted; });
  const OpRow *row = at != std::end(kTable) && key(*at) == std::pair(domain, name) ? at : nullptr;
  if (opset < 0) return {nullptr, 0, "the model imports no opset for domain '" + domain.str() + "'"};
  if (!row) return {nullptr, 0, "not in the op table"};
  OpLookup result;
  for (int since : row->since)
    if (since <= opset) result.version = since;
  if (result.version == 0)
    result.why = "exists from version " + std::to_string(row->since.front()) + " on, the model imports " + std::to_string(opset);
  else if (result.version > row->newest)
    result.why = "version " + std::to_string(result.version) + " is newer than the supported " + std::to_string(row->newest);
  else
    result.row = row;
  return result;
}

} // namespace tare
