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

onnx::FunctionProto fidelityFunction(int64_t opset) {
  onnx::FunctionProto f;
  f.set_domain("tare"), f.set_name("FidelityCheck");
  for (const char *name : {"h", "W", "p", "tau", "E"}) f.add_input(name);
  f.add_output("out");
  f.add_opset_import()->set_version(opset);
  auto node = [&](const char *op, std::initializer_list<const char *> inputs, const char *output) {
    auto *n = f.add_node();
    n->set_op_type(op);
    for (const char *name : inputs) n->add_input(name);
    n->add_output(output);
    return n;
  };
  auto ints = [&](const char *name, std::initializer_list<int64_t> values) {
    auto *a = node("Constant", {}, name)->add_attribute();
    a->set_name("value"), a->set_type(onnx::AttributeProto::TENSOR);
    auto *t = a->mutable_t();
    t->set_data_type(onnx::TensorProto::INT64), t->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values) t->add_int64_data(v);
  };
  auto integer = [&](onnx::NodeProto *n, const char *name, int64_t value) {
    auto *a = n->add_attribute();
    a->set_name(name), a->set_type(onnx::AttributeProto::INT), a->set_i(value);
  };
  ints("two0", {0, 0}), ints("last", {-1}), ints("i2", {2});
  node("Shape", {"p"}, "pshape"), node("Shape", {"W"}, "wshape");
  node("Gather", {"wshape", "i2"}, "dim");
  integer(node("Concat", {"last", "dim"}, "flat"), "axis", 0);
  node("Reshape", {"W", "flat"}, "W2");
  auto *perm = node("Transpose", {"W2"}, "Wt")->add_attribute();
  perm->set_name("perm"), perm->set_type(onnx::AttributeProto::INTS), perm->add_ints(1), perm->add_ints(0);
  node("MatMul", {"h", "Wt"}, "z0");
  integer(node("Concat", {"two0", "pshape"}, "zshape"), "axis", 0);
  node("Reshape", {"z0", "zshape"}, "z1");
  node("Sub", {"z1", "p"}, "z");
  node("Mul", {"z", "z"}, "zz");
  integer(node("ReduceSum", {"zz", "last"}, "d2"), "keepdims", 0);
  node("Sqrt", {"d2"}, "d");
  node("Less", {"d", "tau"}, "b");
  node("CastLike", {"b", "E"}, "bf");
  node("MatMul", {"bf", "E"}, "out");
  return f;
}

} // namespace tare
