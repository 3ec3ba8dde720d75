// Coverage of a model by the op table, and the error that lists all gaps at once.
#include "compiler/import/Unsupported.h"
#include "compiler/import/FidelityFunction.h"
#include "compiler/import/Import.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/TopologicalOrder.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace tare {

namespace {
struct Use { OpLookup found; int64_t opset = -1; std::vector<std::string> nodes; uint64_t count = 0; };
using Uses = std::map<std::tuple<std::string, std::string, int64_t>, Use>; // domain, op, opset
struct Body { const NodeList *nodes; Opsets opsets; std::string prefix; };
} // namespace

static Error checkTensor(const onnx::TensorProto &tensor, ExternalData &external, StringRef node) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return Error::success();
  auto entry = readExternalEntry(tensor);
  if (!entry) return entry.takeError();
  return external.open(entry->location, tensor.name().empty() ? node : StringRef(tensor.name())).takeError();
}

/// All ops that an import would meet: the graph, the bodies of subgraphs and of called functions. Iterative; nesting was bounded before.
static Error collect(const OnnxModel &model, ExternalData *external, Uses &uses) {
  std::vector<Body> work{{&model.proto.graph().node(), model.opsets, ""}};
  SmallPtrSet<const onnx::FunctionProto *, 8> called;
  while (!work.empty()) {
    Body body = std::move(work.back());
    work.pop_back();
    for (int i = 0; i < body.nodes->size(); ++i) {
      auto &node = (*body.nodes)[i];
      std::string name = body.prefix + displayName(node, i);
      for (auto &attribute : node.attribute()) {
        if (external && attribute.has_t())
          if (auto error = checkTensor(attribute.t(), *external, name)) return error;
        for (auto *graph : [&] {
               std::vector<const onnx::GraphProto *> list;
               if (attribute.has_g()) list.push_back(&attribute.g());
               for (auto &inner : attribute.graphs()) list.push_back(&inner);
               return list;
             }()) {
          if (external)
            for (auto &t : graph->initializer())
              if (auto error = checkTensor(t, *external, name)) return error;
          work.push_back({&graph->node(), body.opsets, name + "/"});
        }
      }
      if (auto *function = calledFunction(model, node); function && !isFidelityCheck(*function)) {
        if (!called.insert(function).second) continue;
        Opsets opsets = body.opsets;
        if (auto own = readOpsets(function->opset_import(), function->name()))
          for (auto &[domain, version] : *own) opsets[domain] = version;
        else
          return own.takeError();
        work.push_back({&function->node(), opsets, name + "/"});
        continue;
      }
      auto opset = body.opsets.find(normalDomain(node.domain()).str());
      int64_t version = opset == body.opsets.end() ? -1 : opset->second;
      auto [it, added] = uses.try_emplace({normalDomain(node.domain()).str(), node.op_type(), version});
      Use &use = it->second;
      if (added) use.found = lookUp(node.domain(), node.op_type(), version), use.opset = version;
      ++use.count;
      if (use.nodes.size() < 3 && !use.found.row) use.nodes.push_back(name);
    }
  }
  return Error::success();
}

Error checkSupport(const OnnxModel &model, ExternalData &external) {
  Uses uses;
  if (auto error = collect(model, &external, uses)) return error;
  std::string list, firstNode;
  uint64_t missing = 0;
  for (auto &[key, use] : uses) {
    if (use.found.row) continue;
    ++missing;
    auto &[domain, op, opset] = key;
    if (firstNode.empty()) firstNode = use.nodes[0];
    list += list.empty() ? "" : "; ";
    list += (domain.empty() ? "ai.onnx" : domain) + "::" + op + " (opset " + (opset < 0 ? "not imported" : std::to_string(opset)) + ", node";
    for (size_t i = 0; i < use.nodes.size(); ++i) list += std::string(i ? ", '" : use.nodes.size() > 1 ? "s '" : " '") + use.nodes[i] + "'";
    if (use.count > use.nodes.size()) list += " and " + std::to_string(use.count - use.nodes.size()) + " more";
    list += "): " + use.found.why;
  }
  if (!missing) return Error::success();
  return refuse(std::to_string(missing) + (missing == 1 ? " operator is" : " operators are") + " not supported: " + list)
      .atNode(firstNode)
      .withHint("`tare compile --supported` lists the op table, `--dry-run` the coverage of a model");
}

Expected<std::vector<OpCoverage>> importCoverage(StringRef path) {
  auto model = loadOnnx(path);
  if (!model) return model.takeError();
  Uses uses;
  if (auto error = collect(**model, nullptr, uses)) return std::move(error);
  std::vector<OpCoverage> result;
  for (auto &[key, use] : uses) {
    auto &[domain, op, opset] = key;
    result.push_back({domain, op, use.found.version, use.count, use.found.row != nullptr, use.found.why});
  }
  return result;
}

} // namespace tare
