// What later stages want to know about a node: index, module path, metadata, names of its results. Attached to every op that the node made.
#include "compiler/import/GraphImport.h"
#include "compiler/import/ModulePath.h"

using namespace mlir;

namespace tare {

void GraphImport::annotate(const onnx::NodeProto &proto, int index, const Frame &frame, Operation *before, ArrayRef<Value> results) {
  Operation *first = before ? before->getNextNode() : (body->empty() ? nullptr : &body->front());
  if (!first) return;
  Metadata metadata = frame.metadata;
  for (auto &[key, value] : metadataOf(proto)) metadata[key] = value;
  SmallVector<NamedAttribute> entries;
  for (auto &[key, value] : metadata)
    if (!key.empty()) entries.push_back(g.builder.getNamedAttr(key, g.builder.getStringAttr(value)));
  auto scopes = metadata.find("pkg.torch.onnx.name_scopes");
  std::string scope = scopes == metadata.end() ? "" : innermostScope(scopes->second);
  auto dictionary = g.builder.getDictionaryAttr(entries);
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!frame.call) op->setAttr(graph::kNodeAttr, g.builder.getI64IntegerAttr(index));
    if (!scope.empty()) op->setAttr(graph::kScopeAttr, g.builder.getStringAttr(scope));
    if (!entries.empty()) op->setAttr(graph::kMetaAttr, dictionary);
    for (auto [i, value] : llvm::enumerate(results))
      if (value && value.getDefiningOp() == op && !proto.output(i).empty())
        op->setAttr(graph::kTensorAttr, g.builder.getStringAttr(frame.prefix + proto.output(i)));
  }
}

} // namespace tare
