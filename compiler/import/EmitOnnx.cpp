// Rewiring and dead code that the removal made.
#include "compiler/import/EmitOnnx.h"
#include "compiler/import/GraphUses.h"
#include "compiler/import/OnnxModel.h"
#include "compiler/import/OnnxWriter.h"
#include "compiler/import/TopologicalOrder.h"
#include "llvm/ADT/StringSet.h"
#include <filesystem>

using namespace llvm;

namespace tare {

namespace {
class Pruner {
public:
  explicit Pruner(onnx::GraphProto &graph) : graph(graph) {
    for (int i = 0; i < graph.node_size(); ++i)
      for (auto &name : graph.node(i).output())
        if (!name.empty()) producer[name] = i, names.insert(name);
    for (auto &input : graph.input()) names.insert(input.name()), inputs.insert(input.name());
    for (auto &tensor : graph.initializer()) names.insert(tensor.name());
    for (auto &tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  }
  Error remove(ArrayRef<LayerRemoval> removals);

private:
  Error resolve(ArrayRef<LayerRemoval> removals);
  /// Names that some graph output needs, through nodes and subgraphs.
  StringSet<> liveNames();
  void keepOutputs();
  void dropDead(const StringSet<> &before, const StringSet<> &after);

  onnx::GraphProto &graph;
  StringMap<int> producer;
  StringSet<> names, inputs;
  std::vector<bool> dead; // by node
  StringMap<std::string> replacement; // removed output -> what its consumers read
};
} // namespace

Error Pruner::resolve(ArrayRef<LayerRemoval> removals) {
  StringMap<const LayerRemoval *> byOutput;
  for (auto &r : removals) {
    for (auto *name : {&r.input, &r.output})
      if (!names.contains(*name))
        return refuse("layer '" + r.layer + "' cannot be removed from the ONNX file: tensor '" + *name + "' is not in its graph (a layer inside of a function stays)").ofTensor(*name);
    if (r.input == r.output || !producer.count(r.output)) return refuse("layer '" + r.layer + "': tensor '" + r.output + "' is not the result of a node").ofTensor(r.output);
    if (!byOutput.try_emplace(r.output, &r).second) return refuse("two removed layers have the output '" + r.output + "'").ofTensor(r.output);
  }
  for (auto &r : removals) { // a removed layer may feed another one
    const LayerRemoval *last = &r;
    for (size_t steps = 0; byOutput.count(last->input); ++steps) {
      if (steps > removals.size()) return refuse("removed layers feed each other in a cycle").atNode(r.layer);
      last = byOutput[last->input];
    }
    replacement[r.output] = last->input;
  }
  return Error::success();
}

StringSet<> Pruner::liveNames() {
  StringSet<> live;
  std::vector<int> work;
  std::vector<bool> seen(graph.node_size(), false);
  auto need = [&](const std::string &name) {
    if (!live.insert(name).second) return;
    auto it = producer.find(name);
    if (it != producer.end() && !seen[it->second]) seen[it->second] = true, work.push_back(it->second);
  };
  for (auto &output : graph.output()) {
    auto it = replacement.find(output.name()); // a removed output is written by an Identity of its replacement
    need(it == replacement.end() ? output.name() : it->second);
  }
  while (!work.empty()) {
    int i = work.back();
    work.pop_back();
    visitReferences(*graph.mutable_node(i), [&](std::string &name) { need(name); });
  }
  return live;
}

void Pruner::keepOutputs() {
  for (auto &output : graph.output()) {
    auto it = replacement.find(output.name());
    if (it == replacement.end()) continue;
    // The old producer may live on through another result: it then writes to a name that nobody reads.
    int index = producer[output.name()];
    auto &old = *graph.mutable_node(index);
    for (auto &name : *old.mutable_output())
      if (name == output.name() && !dead[index]) {
        std::string unused = name + "__removed";
        while (!names.insert(unused).second) unused += "_";
        name = unused;
      }
    auto *identity = graph.add_node();
    identity->set_op_type("Identity");
    identity->set_name(output.name() + "__kept");
    identity->add_input(it->second);
    identity->add_output(output.name());
  }
}

void Pruner::dropDead(const StringSet<> &before, const StringSet<> &after) {
  auto died = [&](const std::string &name) { return before.contains(name) && !after.contains(name); };
  StringSet<> dropped;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> rest;
  for (int i = 0; i < graph.node_size(); ++i) {
    auto &node = *graph.mutable_node(i);
    if (i < static_cast<int>(dead.size()) && dead[i])
      for (auto &name : node.output()) dropped.insert(name);
    else
      rest.Add(std::move(node));
  }
  for (auto &output : graph.output()) dropped.erase(output.name());
  graph.mutable_node()->Swap(&rest);
  auto erase = [](auto *list, auto dead) {
    for (int i = list->size() - 1; i >= 0; --i)
      if (dead(list->Get(i))) list->DeleteSubrange(i, 1);
  };
  auto unneeded = [&](const std::string &name) { return died(name) && !inputs.contains(name); };
  auto compact = [&](auto *list, auto nameOf) { // DeleteSubrange in a loop would be quadratic
    typename std::remove_pointer_t<decltype(list)> rest;
    for (auto &item : *list)
      if (std::string name = nameOf(item); !unneeded(name)) rest.Add(std::move(item));
      else dropped.insert(name);
    list->Swap(&rest);
  };
  compact(graph.mutable_initializer(), [](auto &t) { return t.name(); });
  compact(graph.mutable_sparse_initializer(), [](auto &t) { return t.values().name(); });
  erase(graph.mutable_value_info(), [&](auto &info) { return dropped.contains(info.name()); });
  erase(graph.mutable_quantization_annotation(), [&](auto &note) { return dropped.contains(note.tensor_name()); });
}

Error Pruner::remove(ArrayRef<LayerRemoval> removals) {
  StringSet<> before = liveNames();
  if (auto error = resolve(removals)) return error;
  for (auto &node : *graph.mutable_node())
    visitReferences(node, [&](std::string &name) {
      if (auto it = replacement.find(name); it != replacement.end()) name = it->second;
    });
  StringSet<> after = liveNames();
  // A node dies when something needed it before and nothing needs any of its results now; other dead nodes are the source's own business.
  for (auto &node : graph.node()) {
    auto isIn = [&](const StringSet<> &live) { return any_of(node.output(), [&](auto &name) { return live.contains(name); }); };
    dead.push_back(isIn(before) && !isIn(after));
  }
  keepOutputs();
  dropDead(before, after);
  return Error::success();
}

Error emitPrunedOnnx(StringRef source, StringRef target, ArrayRef<LayerRemoval> removals) {
  std::error_code code;
  if (std::filesystem::equivalent(source.str(), target.str(), code))
    return fail(ExitCode::Usage, "the emitted ONNX file would overwrite its source").inFile(target.str());
  auto model = loadOnnx(source);
  if (!model) return model.takeError();
  onnx::ModelProto &proto = (*model)->proto;
  if (auto error = Pruner(*proto.mutable_graph()).remove(removals)) return error;
  return writeOnnx(proto, source, target);
}

} // namespace tare
