// plan.program to FlatBuffers. In: a planned module, where each weight lies, which sections hold code. Out: the bytes of the plan section. Must hold: dims
// keep the index that the machine code uses; expressions that only the runtime needs are appended behind them.
#pragma once
#include "compiler/engine/EngineWriter.h"
#include "compiler/plan/Plan.h"

namespace tare {

struct CodePlace { std::string level; uint32_t section = 0; uint64_t textBytes = 0; };
/// Where an image's kernels lie: offsets and sizes in its section.
struct ImagePlace { std::string architecture; uint32_t section = 0; std::vector<uint64_t> offsets, sizes; };

/// The one plan.program of a module; a Failure (exit 1) when there is none.
llvm::Expected<plan::ProgramOp> findProgram(mlir::ModuleOp planned);
/// `weightOffsets`: offset in the weights section of every weight buffer, by index in the program.
llvm::Expected<std::string> buildPlan(const EngineContents &contents, const std::map<size_t, uint64_t> &weightOffsets, const std::vector<CodePlace> &code, const std::vector<ImagePlace> &images);

} // namespace tare
