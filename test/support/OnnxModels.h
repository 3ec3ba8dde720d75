// Small ONNX models for tests, made with the protobuf classes (which check nothing, so invalid ones can be made too), and the text of a refusal.
#pragma once
#include "compiler/import/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "test/support/TempDir.h"
#include <onnx/onnx_pb.h>
#include <sstream>

namespace tare::test {

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

/// A model under construction. `input("x", 1, {"S", "4"})`: numbers are sizes, anything else symbols.
struct OnnxModel {
  onnx::ModelProto proto;
  explicit OnnxModel(int opset = 17, int ir = 8) {
    proto.set_ir_version(ir);
    import("", opset);
    proto.mutable_graph()->set_name("g");
  }
  OnnxModel &import(const std::string &domain, int version) {
    auto *set = proto.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
    return *this;
  }
  static void value(onnx::ValueInfoProto *info, const std::string &name, int type, const Strings &dims) {
    info->set_name(name);
    auto *tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (auto &d : dims) {
      auto *dim = tensor->mutable_shape()->add_dim();
      if (!d.empty() && (std::isdigit(d[0]) || d[0] == '-')) dim->set_dim_value(std::stoll(d));
      else if (!d.empty()) dim->set_dim_param(d);
    }
  }
  OnnxModel &input(const std::string &name, int type = 1, const Strings &dims = {"S", "4"}) { return value(proto.mutable_graph()->add_input(), name, type, dims), *this; }
  OnnxModel &output(const std::string &name) { return proto.mutable_graph()->add_output()->set_name(name), *this; }
  OnnxModel &output(const std::string &name, int type, const Strings &dims) { return value(proto.mutable_graph()->add_output(), name, type, dims), *this; }
  onnx::NodeProto &node(const std::string &op, const Strings &in, const Strings &out, const std::string &domain = "") { return addNode(proto.mutable_graph()->add_node(), op, in, out, domain); }
  static onnx::NodeProto &addNode(onnx::NodeProto *n, const std::string &op, const Strings &in, const Strings &out, const std::string &domain = "") {
    n->set_op_type(op);
    if (!domain.empty()) n->set_domain(domain);
    for (auto &name : in) n->add_input(name);
    for (auto &name : out) n->add_output(name);
    return *n;
  }
  onnx::TensorProto &floats(const std::string &name, const std::vector<float> &values, const Ints &dims) {
    auto *t = proto.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(1);
    for (int64_t d : dims) t->add_dims(d);
    for (float v : values) t->add_float_data(v);
    return *t;
  }
  onnx::TensorProto &ints(const std::string &name, const Ints &values, bool scalar = false) {
    auto *t = proto.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(7);
    if (!scalar) t->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values) t->add_int64_data(v);
    return *t;
  }
  /// A tensor whose bytes lie in another file; entries are (key, value).
  onnx::TensorProto &external(const std::string &name, const Ints &dims, const std::vector<std::pair<std::string, std::string>> &entries) {
    auto *t = proto.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(1);
    for (int64_t d : dims) t->add_dims(d);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto &[key, value] : entries) {
      auto *e = t->add_external_data();
      e->set_key(key);
      e->set_value(value);
    }
    return *t;
  }
  std::string bytes() const { return proto.SerializePartialAsString(); }
  std::string save(const TempDir &dir, const std::string &name = "m.onnx") const { return dir.write(name, bytes()); }
};

inline onnx::AttributeProto &attribute(onnx::NodeProto &n, const std::string &name, onnx::AttributeProto::AttributeType type) {
  auto *a = n.add_attribute();
  a->set_name(name);
  a->set_type(type);
  return *a;
}
inline void set(onnx::NodeProto &n, const std::string &name, int64_t value) { attribute(n, name, onnx::AttributeProto::INT).set_i(value); }
inline void set(onnx::NodeProto &n, const std::string &name, const Ints &values) {
  auto &a = attribute(n, name, onnx::AttributeProto::INTS);
  for (int64_t v : values) a.add_ints(v);
}

/// "exit 3: message [file m.onnx] [node n] [tensor t]" of a refused import; "imported" when it was not refused.
inline std::string refusal(const std::string &path) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  CompileOptions options;
  options.model = path;
  auto model = importModel(context, options);
  if (model) return "imported";
  std::string text;
  handleAllErrors(model.takeError(), [&](const Failure &f) {
    text = "exit " + std::to_string(static_cast<int>(f.code)) + ": " + f.message + " [file " + f.file + "]";
    if (!f.node.empty()) text += " [node " + f.node + "]";
    if (!f.tensor.empty()) text += " [tensor " + f.tensor + "]";
  }, [&](const llvm::ErrorInfoBase &e) { text = "not a tare::Failure: " + e.message(); });
  return text;
}
inline std::string refusal(const OnnxModel &model) {
  TempDir dir;
  return refusal(model.save(dir));
}

/// The imported module as text, or the refusal.
inline std::string imported(const std::string &path, std::vector<std::string> *warnings = nullptr) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  CompileOptions options;
  options.model = path;
  auto model = importModel(context, options);
  if (!model) return llvm::consumeError(model.takeError()), refusal(path);
  if (warnings) *warnings = model->warnings;
  std::string text;
  llvm::raw_string_ostream os(text);
  model->module->print(os);
  return text;
}
inline std::string imported(const OnnxModel &model, std::vector<std::string> *warnings = nullptr) {
  TempDir dir;
  return imported(model.save(dir), warnings);
}

} // namespace tare::test

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text)
