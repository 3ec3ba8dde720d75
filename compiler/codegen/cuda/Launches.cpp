// Arguments in order: the dispatch's operands, its results, the scratch buffer that a step's launches share, the
// symbols that the text uses, the dispatch's capacities, then fault word and step number for a kernel that gathers.
#include "compiler/codegen/cuda/Launches.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tare::cuda {

std::vector<Launch> launchesOf(ModuleOp planned, const std::vector<KernelText> &kernels) {
  plan::ProgramOp program = *planned.getOps<plan::ProgramOp>().begin();
  SmallVector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>());
  SmallVector<plan::DispatchOp> steps(program.getBody().getOps<plan::DispatchOp>());
  std::vector<std::vector<const KernelText *>> textsOf(steps.size());
  for (auto &text : kernels)
    for (unsigned step : text.steps)
      textsOf[step].push_back(&text);
  std::vector<Launch> launches;
  for (auto [number, step] : llvm::enumerate(steps))
    for (const KernelText *one : textsOf[number]) {
      const KernelText &text = *one;
      func::FuncOp function = text.function;
      Launch launch{static_cast<unsigned>(number), &text, {}};
      auto add = [&](int64_t index, Type type, Type stored, bool written) {
        plan::BufferOp buffer = buffers[static_cast<size_t>(index)];
        auto check = text.scratch.isConstant(0) ? LaunchArgument::Anchors : LaunchArgument::Check; // fused, split
        auto kind = buffer.getKind() == "check" ? check : LaunchArgument::Buffer;
        launch.arguments.push_back({kind, static_cast<unsigned>(launch.arguments.size()), index, type, stored, written, {}});
      };
      auto plain = [&](LaunchArgument::Kind kind, const tare::Dim &dim = {}) {
        launch.arguments.push_back({kind, 0, -1, {}, {}, false, dim});
      };
      for (auto [i, index] : llvm::enumerate(step.getOperands()))
        add(index, function.getArgumentTypes()[i], text.stored[i], false);
      for (auto [i, index] : llvm::enumerate(step.getResults()))
        add(index, function.getResultTypes()[i], text.stored[step.getOperands().size() + i], true);
      if (!text.scratch.isConstant(0)) {
        int64_t scratch = step->getAttrOfType<IntegerAttr>(plan::kCudaScratchAttr).getInt();
        auto type = cast<RankedTensorType>(buffers[static_cast<size_t>(scratch)].getType());
        add(scratch, type, type.getElementType(), text.evaluates);
      }
      for (auto &symbol : text.symbols)
        plain(LaunchArgument::Dim, tare::Dim::symbol(symbol));
      if (auto capacities = step.getCapacities())
        for (auto &dim : capacities->dims())
          plain(LaunchArgument::Dim, dim);
      if (text.gathers) plain(LaunchArgument::Fault), plain(LaunchArgument::Step);
      launches.push_back(std::move(launch));
    }
  return launches;
}

} // namespace tare::cuda
