// The walk into subgraph attributes, with the names that each body defines itself.
#include "compiler/import/GraphUses.h"
#include "llvm/ADT/StringSet.h"
#include <memory>
#include <vector>

using namespace llvm;

namespace tare {

namespace {
struct Body {
  onnx::GraphProto *graph;
  std::shared_ptr<StringSet<>> inner; // names defined in this body and the bodies around it, up to the node's own graph
};
} // namespace

static std::vector<onnx::GraphProto *> subgraphs(onnx::NodeProto &node) {
  std::vector<onnx::GraphProto *> list;
  for (auto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) list.push_back(attribute.mutable_g());
    for (auto &graph : *attribute.mutable_graphs()) list.push_back(&graph);
  }
  return list;
}

void visitReferences(onnx::NodeProto &node, function_ref<void(std::string &)> visit) {
  for (auto &name : *node.mutable_input())
    if (!name.empty()) visit(name);
  std::vector<Body> work;
  for (auto *graph : subgraphs(node)) work.push_back({graph, std::make_shared<StringSet<>>()});
  while (!work.empty()) {
    Body body = work.back();
    work.pop_back();
    auto inner = std::make_shared<StringSet<>>(*body.inner);
    for (auto &input : body.graph->input()) inner->insert(input.name());
    for (auto &tensor : body.graph->initializer()) inner->insert(tensor.name());
    for (auto &tensor : body.graph->sparse_initializer()) inner->insert(tensor.values().name());
    for (auto &child : body.graph->node())
      for (auto &output : child.output()) inner->insert(output);
    for (auto &child : *body.graph->mutable_node()) {
      for (auto &name : *child.mutable_input())
        if (!name.empty() && !inner->contains(name)) visit(name);
      for (auto *graph : subgraphs(child)) work.push_back({graph, inner});
    }
    for (auto &output : *body.graph->mutable_output())
      if (!inner->contains(output.name())) visit(*output.mutable_name());
  }
}

} // namespace tare
