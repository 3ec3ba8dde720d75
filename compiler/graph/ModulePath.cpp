// Scope, node name, layer: the first that says something (ModulePath.h). In: an op. Out: its dotted path. Holds: only
// reads; no segment is empty.
#include "compiler/graph/ModulePath.h"
#include "compiler/graph/Graph.h"

using namespace mlir;

namespace tare::graph {

static std::string dotted(StringRef path) {
  std::string result;
  for (char c : path.trim("/. ")) result += c == '/' ? '.' : c;
  return result;
}

std::string modulePath(Operation *op) {
  if (auto layer = dyn_cast<LayerOp>(op)) return dotted(layer.getName());
  if (auto scope = op->getAttrOfType<StringAttr>(kScopeAttr); scope && !scope.empty()) return dotted(scope.getValue());
  // A node name is a path when it has a slash; its last part is the op itself.
  std::string node = nodeName(op->getLoc());
  if (StringRef name(node); name.contains('/'))
    if (std::string path = dotted(name.rsplit('/').first); !path.empty()) return path;
  auto layer = op->getParentOfType<LayerOp>();
  return layer ? dotted(layer.getName()) : "";
}

} // namespace tare::graph
