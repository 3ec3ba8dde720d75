// Kahn's algorithm with the smallest index first.
#include "compiler/import/TopologicalOrder.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringMap.h"
#include <queue>

using namespace llvm;

namespace tare {

std::string displayName(const onnx::NodeProto &node, int index) {
  return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
}

/// A cycle among the nodes that are left: walk from any of them to an unmet producer until a node repeats.
static std::string cyclePath(const NodeList &nodes, const StringMap<int> &producer, const std::vector<int> &missing) {
  int at = 0;
  while (missing[at] == 0) ++at;
  std::vector<int> path, seen(nodes.size(), -1);
  while (seen[at] < 0) {
    seen[at] = static_cast<int>(path.size());
    path.push_back(at);
    for (auto &name : nodes[at].input()) {
      auto it = producer.find(name);
      if (it != producer.end() && missing[it->second] > 0) { at = it->second; break; }
    }
  }
  std::string text;
  size_t begin = seen[at], shown = std::min<size_t>(path.size(), begin + 16);
  for (size_t i = shown; i > begin; --i) text += "'" + displayName(nodes[path[i - 1]], path[i - 1]) + "' -> ";
  return text + (shown < path.size() ? "... -> " : "") + "'" + displayName(nodes[path[shown - 1]], path[shown - 1]) + "'";
}

Expected<std::vector<int>> topologicalOrder(const NodeList &nodes, function_ref<bool(StringRef)> exists) {
  StringMap<int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (auto &name : nodes[i].output()) {
      if (name.empty()) continue;
      auto [it, added] = producer.try_emplace(name, i);
      if (!added)
        return refuse("tensor '" + name + "' is produced twice: by nodes '" + displayName(nodes[it->second], it->second) + "' and '" + displayName(nodes[i], i) + "'").ofTensor(name).atNode(displayName(nodes[i], i));
      if (exists(name))
        return refuse("tensor '" + name + "' is produced by node '" + displayName(nodes[i], i) + "', but a graph input or initializer has that name").ofTensor(name).atNode(displayName(nodes[i], i));
    }
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<int>> consumers(nodes.size());
  for (int i = 0; i < nodes.size(); ++i)
    for (auto &name : nodes[i].input()) {
      if (name.empty() || exists(name)) continue;
      auto it = producer.find(name);
      if (it == producer.end())
        return refuse("tensor '" + name + "' is read by node '" + displayName(nodes[i], i) + "', but nothing produces it").ofTensor(name).atNode(displayName(nodes[i], i));
      ++missing[i];
      consumers[it->second].push_back(i);
    }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<int> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int consumer : consumers[i])
      if (--missing[consumer] == 0) ready.push(consumer);
  }
  if (order.size() < static_cast<size_t>(nodes.size())) return refuse("the nodes form a cycle: " + cyclePath(nodes, producer, missing));
  return order;
}

} // namespace tare
