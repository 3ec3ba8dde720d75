// The body is printed as one expression of its inputs (names of inner tensors do not matter) and compared with the definition of spec 6.
#include "compiler/import/FidelityFunction.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

namespace tare {

/// sum_k (|| W_k h - p_k || < tau_k) E_k, as the exporter writes it: W flattened to [K*R, D] and transposed, z reshaped to [.., K, R].
static constexpr StringLiteral kStandard =
    "MatMul(CastLike(Less(Sqrt(ReduceSum[keepdims=0](Mul(#1,#1),(-1))),tau),E),E) "
    "with #1=Sub(Reshape(MatMul(h,Transpose[perm=1,0](Reshape(W,Concat[axis=0]((-1),Gather(Shape(W),(2)))))),Concat[axis=0]((0,0),Shape(p))),p)";

static std::string tensorText(const onnx::TensorProto &t) {
  if (t.data_type() != onnx::TensorProto::INT64) return "?";
  std::string text;
  auto add = [&](int64_t v) { text += (text.empty() ? "" : ",") + std::to_string(v); };
  for (int64_t v : t.int64_data()) add(v);
  for (size_t i = 0; i + 8 <= t.raw_data().size(); i += 8) add(static_cast<int64_t>(support::endian::read64le(t.raw_data().data() + i)));
  return "(" + text + ")";
}

static std::string attributeText(const onnx::NodeProto &node) {
  std::string text;
  for (auto &a : node.attribute()) {
    text += (text.empty() ? "" : ";") + a.name() + "=";
    if (a.type() == onnx::AttributeProto::INT) text += std::to_string(a.i());
    else if (a.type() == onnx::AttributeProto::INTS) text += join(map_range(a.ints(), [](int64_t v) { return std::to_string(v); }), ",");
    else return "?";
  }
  return text.empty() ? "" : "[" + text + "]";
}

bool isFidelityCheck(const onnx::FunctionProto &f) {
  if (f.domain() != "tare" || f.name() != "FidelityCheck" || f.input_size() != 5 || f.output_size() != 1 || f.node_size() > 32) return false;
  StringMap<std::string> text;
  const char *names[] = {"h", "W", "p", "tau", "E"};
  for (int i = 0; i < 5; ++i) text[f.input(i)] = names[i];
  std::string shared;
  for (auto &node : f.node()) { // in order: a body that is not sorted is not the standard one
    if (node.output_size() != 1 || !node.domain().empty()) return false;
    std::string expression;
    if (node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t()) {
      expression = tensorText(node.attribute(0).t());
    } else {
      expression = node.op_type() + attributeText(node) + "(";
      for (int i = 0; i < node.input_size(); ++i) expression += (i ? "," : "") + text.lookup(node.input(i));
      expression += ")";
    }
    if (node.op_type() == "Sub") shared = expression, expression = "#1";
    if (expression.size() > 1024) return false;
    text[node.output(0)] = expression;
  }
  return text.lookup(f.output(0)) + " with #1=" + shared == kStandard;
}

} // namespace tare
