// Finding the linear layers, checking that shapes fit, adding nodes (AttachChecks.h). Nodes are looked up by maps: a graph may have a million.
#include "compiler/import/AttachChecks.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/CheckTensors.h"
#include "compiler/import/FidelityFunction.h"
#include "compiler/import/GraphUses.h"
#include "compiler/import/ModulePath.h"
#include "compiler/import/TopologicalOrder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace tare {
namespace {

/// MatMul(h, weight) with a constant weight [width, columns], perhaps with its bias, or a Gemm between the reshapes that flatten tokens for it: `last` is the node whose
/// result the check is added to, h [batch, tokens, width] what it reads.
struct Linear {
  int node = -1, last = -1;
  std::string path, h, result, why; ///< why: it can have no check
  bool isFlat = false;              ///< `result` is [batch * tokens, columns]
  int element = 0;
  int64_t width = 0, columns = 0;
};

class Attacher {
public:
  Attacher(onnx::ModelProto &model, StringRef file) : model(model), graph(*model.mutable_graph()), file(file) {}
  Expected<std::vector<AttachedCheck>> run(ArrayRef<CheckEntry> entries);

private:
  FailureBuilder bad(const CheckEntry &entry, const std::string &what) const {
    return refuse("line " + std::to_string(entry.line) + ": " + what).inFile(file.str());
  }
  Error index();
  const onnx::TensorProto *constantOf(StringRef name, bool &transposed) const;
  void findLinears();
  void readGemm(const onnx::NodeProto &node, Linear &l);
  Expected<AttachedCheck> attach(const CheckEntry &entry, const Linear &linear, ArrayRef<std::string> wildcards);
  void insertNodes();

  onnx::ModelProto &model;
  onnx::GraphProto &graph;
  StringRef file;
  CheckTensors tensors;
  StringMap<const onnx::TensorProto *> initializers;
  StringMap<int> producer;
  StringMap<SmallVector<int, 2>> readers;
  StringSet<> names, outputs;
  std::vector<Linear> linears;
  StringMap<std::string> checkOf; // linear layer -> its check
  struct Addition {
    int after;
    std::string from, to; // what others read before and now
    onnx::NodeProto check, flatten, add; // flatten: only when it has a name
    std::vector<onnx::TensorProto> weights;
  };
  std::vector<Addition> additions;
};

Error Attacher::index() {
  for (auto &tensor : graph.initializer()) initializers[tensor.name()] = &tensor, names.insert(tensor.name());
  for (auto &input : graph.input()) names.insert(input.name()), initializers.erase(input.name()); // an initializer that is an input is no constant
  for (auto &output : graph.output()) outputs.insert(output.name());
  for (int i = 0; i < graph.node_size(); ++i) {
    auto &node = *graph.mutable_node(i);
    for (auto &name : node.output()) producer[name] = i, names.insert(name);
    visitReferences(node, [&](std::string &name) { readers[name].push_back(i); });
  }
  for (auto &import : model.opset_import())
    if ((import.domain().empty() || import.domain() == "ai.onnx") && import.version() < 15)
      return refuse("checks are made of ops of opset 15, and this model imports " + std::to_string(import.version())).withHint("export the model again with opset 17 or newer");
  for (auto &function : model.functions())
    if (function.domain() == "tare" && function.name() == "FidelityCheck" && !isFidelityCheck(function))
      return refuse("the model has a function tare.FidelityCheck of its own, which is not the standard one").atNode("tare.FidelityCheck").withHint("rename or inline it");
  return Error::success();
}

/// An initializer or Constant behind at most one Transpose; the importer decodes nothing else that a linear layer's weight comes through.
const onnx::TensorProto *Attacher::constantOf(StringRef name, bool &transposed) const {
  for (int depth = 0; depth < 4; ++depth) {
    if (auto found = initializers.find(name); found != initializers.end()) return found->second;
    auto made = producer.find(name);
    if (made == producer.end()) return nullptr;
    auto &node = graph.node(made->second);
    if (node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t()) return &node.attribute(0).t();
    if (node.op_type() == "Transpose") transposed = !transposed;
    else if (node.op_type() != "Identity") return nullptr;
    if (node.input_size() != 1) return nullptr;
    name = node.input(0);
  }
  return nullptr;
}

int64_t intAttribute(const onnx::NodeProto &node, StringRef name, int64_t otherwise) {
  for (auto &a : node.attribute())
    if (a.name() == name) return a.i();
  return otherwise;
}
float floatAttribute(const onnx::NodeProto &node, StringRef name, float otherwise) {
  for (auto &a : node.attribute())
    if (a.name() == name) return a.f();
  return otherwise;
}

/// A Gemm works on a matrix of tokens: the states [batch, tokens, width] are what the Reshape in front of it reads, and often a Reshape behind it restores the tokens.
void Attacher::readGemm(const onnx::NodeProto &node, Linear &l) {
  auto made = producer.find(l.h);
  if (intAttribute(node, "transA", 0)) l.why = "is a Gemm whose input is transposed";
  else if (floatAttribute(node, "alpha", 1) != 1 || (node.input_size() > 2 && !node.input(2).empty() && floatAttribute(node, "beta", 1) != 1)) l.why = "is a Gemm with an alpha or beta that is not 1";
  else if (made == producer.end() || graph.node(made->second).op_type() != "Reshape") l.why = "is a Gemm on a matrix of tokens, and nothing in front of it has [batch, tokens, width], which a check needs";
  if (!l.why.empty()) return;
  l.h = graph.node(made->second).input(0), l.isFlat = true;
  auto read = readers.find(l.result);
  if (read == readers.end() || read->second.size() != 1 || outputs.contains(l.result)) return;
  auto &next = graph.node(read->second[0]);
  if (next.op_type() == "Reshape" && next.input(0) == l.result) l.last = read->second[0], l.result = next.output(0), l.isFlat = false;
}

void Attacher::findLinears() {
  for (int i = 0; i < graph.node_size(); ++i) {
    auto &node = graph.node(i);
    if (!node.domain().empty() || (node.op_type() != "MatMul" && node.op_type() != "Gemm") || node.input_size() < 2) continue;
    bool transposed = node.op_type() == "Gemm" && intAttribute(node, "transB", 0);
    auto *weight = constantOf(node.input(1), transposed);
    if (!weight || weight->dims_size() != 2) continue;
    Linear l;
    l.node = l.last = i, l.h = node.input(0), l.result = node.output(0), l.element = weight->data_type();
    l.width = weight->dims(transposed), l.columns = weight->dims(!transposed);
    l.path = modulePathOf(node);
    if (l.path.empty()) l.path = StringRef(node.input(1)).rsplit('.').first.str();
    if (node.op_type() == "Gemm") readGemm(node, l);
    // The bias: the only reader adds a constant vector.
    if (auto read = readers.find(l.result); node.op_type() == "MatMul" && read != readers.end() && read->second.size() == 1 && !outputs.contains(l.result)) {
      auto &next = graph.node(read->second[0]);
      bool turned = false;
      if (next.op_type() == "Add" && next.input_size() == 2) {
        auto *bias = constantOf(next.input(next.input(0) == l.result ? 1 : 0), turned);
        if (bias && bias->dims_size() == 1 && bias->dims(0) == l.columns) l.last = read->second[0], l.result = next.output(0);
      }
    }
    linears.push_back(std::move(l));
  }
}

std::string filled(StringRef pattern, StringRef path, StringRef name, ArrayRef<std::string> wildcards) {
  std::string text = pattern.str();
  auto replace = [&](const std::string &hole, StringRef with) {
    for (size_t at = 0; (at = text.find(hole, at)) != std::string::npos; at += with.size()) text.replace(at, hole.size(), with.str());
  };
  replace("{name}", name);
  replace("{path}", path);
  for (size_t i = 0; i < wildcards.size(); ++i) replace("{" + std::to_string(i + 1) + "}", wildcards[i]);
  return text;
}

std::string shapeText(ArrayRef<int64_t> shape) {
  return "[" + join(map_range(shape, [](int64_t d) { return std::to_string(d); }), ", ") + "]";
}

Expected<AttachedCheck> Attacher::attach(const CheckEntry &entry, const Linear &linear, ArrayRef<std::string> wildcards) {
  AttachedCheck check{filled(entry.name, linear.path, "", wildcards), linear.path, 0, 0, linear.width, linear.columns};
  if (check.name.find_first_of("{}/ ") != std::string::npos || check.name.empty()) return bad(entry, "the name '" + check.name + "' is no module path").withHint("{1} stands for the first * of 'layer', {path} for the layer");
  auto &node = graph.node(linear.node);
  if (!linear.why.empty()) return bad(entry, "'" + linear.path + "' " + linear.why).atNode(node.name()).withHint("export the model so that its linear layers are MatMul and Add");
  if (auto [at, fresh] = checkOf.try_emplace(linear.path, check.name); !fresh) return bad(entry, "'" + linear.path + "' gets a second check; it has '" + at->second + "'");
  for (int reader : readers[linear.h])
    if (graph.node(reader).domain() == "tare") return bad(entry, "'" + linear.path + "' has a check already").atNode(graph.node(reader).name()).withHint("attach-checks adds to layers that have none");
  if (outputs.contains(linear.result)) return bad(entry, "the result of '" + linear.path + "' is an output of the model").ofTensor(linear.result);

  // Shapes first, so that a message speaks of what does not fit instead of a number inside of it.
  std::array<std::string, 4> sources;
  for (size_t i = 0; i < 4; ++i) sources[i] = filled(entry.tensors[i], linear.path, check.name, wildcards);
  auto w = tensors.find(entry.weights, sources[0]);
  if (!w) return w.takeError();
  auto misfit = [&](size_t i, ArrayRef<int64_t> got, const std::string &wanted) {
    return bad(entry, kCheckTensors[i].str() + " of '" + check.name + "' has shape " + shapeText(got) + ", and " + wanted).ofTensor(sources[i])
        .withHint("the weights are in " + entry.weights + "; W is [heads, rank, width of the layer's input], p [heads, rank], tau [heads], E [heads, width of the layer's result]");
  };
  if (w->shape.size() != 3 || w->shape[0] < 1 || w->shape[1] < 1) return misfit(0, w->shape, "it must be [heads, rank, width]");
  check.heads = w->shape[0], check.rank = w->shape[1];
  if (w->shape[2] != linear.width) return misfit(0, w->shape, "the input of '" + linear.path + "' has width " + std::to_string(linear.width));
  if (entry.heads && *entry.heads != check.heads) return misfit(0, w->shape, "the checks file says heads: " + std::to_string(*entry.heads));
  if (entry.rank && *entry.rank != check.rank) return misfit(0, w->shape, "the checks file says rank: " + std::to_string(*entry.rank));
  SmallVector<int64_t> wanted[] = {{}, {check.heads, check.rank}, {check.heads}, {check.heads, linear.columns}};
  for (size_t i = 1; i < 4; ++i) {
    auto view = tensors.find(entry.weights, sources[i]);
    if (!view) return view.takeError();
    if (ArrayRef<int64_t>(view->shape) != ArrayRef<int64_t>(wanted[i])) return misfit(i, view->shape, "it must be " + shapeText(wanted[i]));
  }

  Addition added;
  added.after = linear.last, added.from = linear.result;
  std::string scope = check.name;
  std::replace(scope.begin(), scope.end(), '.', '/');
  // As exporters write it: segments that are numbers belong to the one before ("layer.0"), so that paths read from names are the same again.
  for (size_t at = 0; (at = scope.find('/', at)) != std::string::npos; ++at)
    if (at + 1 < scope.size() && isDigit(scope[at + 1])) scope[at] = '.';
  // The sum is no part of the check: its node carries the path of the module around it.
  auto [around, own] = StringRef(scope).contains('/') ? StringRef(scope).rsplit('/') : std::pair(StringRef(), StringRef(scope));
  std::string bits = "/" + scope + "/FidelityCheck_output_0", sum = (around.empty() ? "" : "/" + around.str()) + "/Add_" + own.str();
  added.to = sum + "_output_0";
  added.check.set_op_type("FidelityCheck"), added.check.set_domain("tare"), added.check.set_name("/" + scope + "/FidelityCheck");
  added.check.add_input(linear.h), added.check.add_output(bits);
  for (size_t i = 0; i < 4; ++i) {
    std::string name = check.name + "." + kCheckTensors[i].str();
    auto tensor = tensors.initializer(entry.weights, sources[i], name, linear.element, kCheckTensors[i] == "tau");
    if (!tensor) return tensor.takeError();
    added.weights.push_back(std::move(*tensor));
    added.check.add_input(name);
  }
  added.add.set_op_type("Add"), added.add.set_name(sum);
  std::string term = linear.isFlat ? "/" + scope + "/Reshape_output_0" : bits;
  if (linear.isFlat) {
    onnx::TensorProto shape;
    shape.set_name(check.name + ".rows"), shape.set_data_type(onnx::TensorProto::INT64), shape.add_dims(2);
    shape.add_int64_data(-1), shape.add_int64_data(linear.columns);
    added.flatten.set_op_type("Reshape"), added.flatten.set_name("/" + scope + "/Reshape");
    added.flatten.add_input(bits), added.flatten.add_input(shape.name()), added.flatten.add_output(term);
    added.weights.push_back(std::move(shape));
  }
  added.add.add_input(linear.result), added.add.add_input(term), added.add.add_output(added.to);
  auto taken = [&](const std::string &name) { return bad(entry, "the model has a tensor '" + name + "' already").ofTensor(name).withHint("'name' in the checks file says how the check is called"); };
  for (auto &tensor : added.weights)
    if (!names.insert(tensor.name()).second) return taken(tensor.name());
  for (auto &name : {bits, added.to, linear.isFlat ? term : std::string()})
    if (!name.empty() && !names.insert(name).second) return taken(name);
  additions.push_back(std::move(added));
  return check;
}

void Attacher::insertNodes() {
  StringMap<std::string> renamed;
  std::vector<SmallVector<Addition *, 1>> after(graph.node_size());
  for (auto &a : additions) renamed[a.from] = a.to, after[a.after].push_back(&a);
  NodeList nodes;
  for (int i = 0; i < graph.node_size(); ++i) {
    visitReferences(*graph.mutable_node(i), [&](std::string &name) {
      if (auto it = renamed.find(name); it != renamed.end()) name = it->second;
    });
    nodes.Add(std::move(*graph.mutable_node(i)));
    for (Addition *a : after[i]) {
      nodes.Add(std::move(a->check));
      if (!a->flatten.name().empty()) nodes.Add(std::move(a->flatten));
      nodes.Add(std::move(a->add));
    }
  }
  graph.mutable_node()->Swap(&nodes);
  for (auto &a : additions)
    for (auto &tensor : a.weights) graph.add_initializer()->Swap(&tensor);
  bool known = false, imported = false;
  for (auto &function : model.functions()) known |= function.domain() == "tare" && function.name() == "FidelityCheck";
  int64_t opset = 17;
  for (auto &import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") opset = import.version();
    imported |= import.domain() == "tare";
  }
  if (!known) *model.add_functions() = fidelityFunction(opset);
  if (!imported) {
    auto *import = model.add_opset_import();
    import->set_domain("tare"), import->set_version(1);
  }
  if (model.ir_version() < 8) model.set_ir_version(8); // functions came with it
}

Expected<std::vector<AttachedCheck>> Attacher::run(ArrayRef<CheckEntry> entries) {
  if (auto error = index()) return error;
  findLinears();
  std::vector<AttachedCheck> attached;
  for (auto &entry : entries) {
    bool any = false;
    StringMap<int> seen;
    for (auto &linear : linears) {
      auto wildcards = matchLayer(entry.layer, linear.path);
      if (!wildcards) continue;
      any = true;
      if (!seen.try_emplace(linear.path, linear.node).second)
        return bad(entry, "'" + linear.path + "' holds several linear layers, " + graph.node(seen[linear.path]).name() + " and " + graph.node(linear.node).name()).withHint("a check belongs to one; give a deeper path");
      auto check = attach(entry, linear, *wildcards);
      if (!check) return check.takeError();
      attached.push_back(*check);
    }
    if (any) continue;
    SmallVector<std::string> some;
    for (auto &linear : linears)
      if (some.size() < 12) some.push_back(linear.path);
    return bad(entry, "no linear layer matches '" + entry.layer + "'").withHint(some.empty() ? "the model has no linear layer with a constant weight" : "linear layers of the model: " + join(some, ", ") + (linears.size() > some.size() ? ", ..." : ""));
  }
  insertNodes();
  return attached;
}

} // namespace

Expected<std::vector<AttachedCheck>> attachChecks(onnx::ModelProto &model, ArrayRef<CheckEntry> entries, StringRef file) {
  return Attacher(model, file).run(entries);
}

} // namespace tare
