// The search for the first diverging module (Divergence.h). In: a source and inputs. Out: a sentence. Holds: only values that leave a module are exposed, so layers keep
// the one output that makes them layers; the engine is compiled to a temporary file for this machine and removed.
#include "tools/tare/Divergence.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/TemporaryFolder.h"
#include "compiler/import/Import.h"
#include "compiler/report/Collect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tools/tare/Compile.h"
#include "tools/tare/Console.h"
#include "tools/tare/Diagnostics.h"
#include "tools/tare/Shadow.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include <filesystem>

using namespace mlir;

namespace tare::cli {

struct Border {
  std::string name, group, node; // texts: the passes of the second compile rewrite the ops
  Value value;
};

/// Float results that another module uses, in execution order; at most 64.
static std::vector<Border> bordersOf(func::FuncOp main) {
  std::vector<Border> borders;
  for (Operation &op : main.getBody().front()) {
    std::string group = report::moduleGroup(&op);
    if (llvm::isa<graph::ConstantOp>(op) || group.empty()) continue;
    for (Value result : op.getResults()) {
      auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
      bool leaves = type && llvm::isa<FloatType>(type.getElementType()) && llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !llvm::isa<func::ReturnOp>(user) && report::moduleGroup(user) != group;
      });
      if (leaves) borders.push_back({"border " + std::to_string(borders.size()), group, graph::nodeName(op.getLoc()), result});
    }
  }
  if (borders.size() > 64) borders.resize(64);
  return borders;
}

static void expose(func::FuncOp main, const std::vector<Border> &borders) {
  Operation *terminator = main.getBody().front().getTerminator();
  SmallVector<Type> results(main.getResultTypes());
  unsigned first = main.getNumResults();
  SmallVector<Value> operands(terminator->getOperands());
  for (auto &border : borders) results.push_back(border.value.getType()), operands.push_back(border.value);
  terminator->setOperands(operands);
  main.setType(FunctionType::get(main.getContext(), main.getArgumentTypes(), results));
  for (unsigned i = 0; i < borders.size(); i++) main.setResultAttr(first + i, graph::kNameAttr, StringAttr::get(main.getContext(), borders[i].name));
}

llvm::Expected<Divergence> firstDivergence(const CompileOptions &given, const ArrayMap &inputs) {
  Console silent;
  silent.quiet = true;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, silent, given.model);
  CompileOptions options = given;
  auto model = importModel(context, options);
  if (!model) return model.takeError();
  if (auto error = exposeInputs(*model->module)) return error;
  auto main = model->module->lookupSymbol<func::FuncOp>("main");
  auto borders = bordersOf(main);
  if (borders.empty()) return Divergence{"the source has no module paths, so no layer can be named", ""};
  std::map<std::string, Value> extra;
  for (auto &border : borders) extra[border.name] = border.value;
  auto expected = evaluateSource(*model->module, inputs, extra);
  if (!expected) return expected.takeError();
  expose(main, borders);

  llvm::SmallString<128> path;
  if (auto error = llvm::sys::fs::createTemporaryFile(temporaryName("verify"), "tare", path)) return llvm::errorCodeToError(error);
  auto cleanup = llvm::make_scope_exit([&] { llvm::sys::fs::remove(path); });
  if (auto error = compileModule(*model, options, path.str().str(), diagnostics)) return error;
  auto engine = EngineHandle::open(path.str().str());
  if (!engine) return engine.takeError();
  auto actual = runEngine(*engine, inputs);
  if (!actual) return actual.takeError();
  for (auto &border : borders) {
    auto found = actual->find(border.name);
    if (found == actual->end() || found->second.shape != (*expected)[border.name].shape) continue;
    Comparison comparison = compareArrays((*expected)[border.name], found->second);
    // The largest element of a hidden state is no answer of the model: only elements out of tolerance count here.
    if (comparison.violations > comparison.changedArgmax)
      return Divergence{"the first module whose output differs is " + border.group + " (node " + border.node + ")", border.node};
  }
  return Divergence{"a fresh compile of this source has no diverging module: the engine was made from another model, with other options, or by another version", ""};
}

} // namespace tare::cli
