// Fusion groups as CUDA text. In: a planned module (plan.program, one function per kernel). Out: one readable .cu per
// kernel, in order of first use, with its launch geometry. Must hold: the text depends on the module alone; what no
// template and no pulled expression covers is refused by name, never printed wrong.
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace tare::cuda {

/// What products of GEMMs and attentions are computed from (--precision, --tf32). F32: f32 on CUDA cores. TF32: products
/// with weights are of operands rounded to TF32 in registers, on tensor cores; the others are F32's. F16, BF16: operands
/// rounded on their way into shared memory or where they are made (Storage.h), tensor cores, sums and softmax state in
/// f32. Buffers are the plan's in every case, so that an engine for several targets has one plan and stores its weights
/// once.
enum class Precision { F32, TF32, F16, BF16 };
/// Nothing for another word than f32, tf32, f16 and bf16.
std::optional<Precision> precisionOf(llvm::StringRef name);

/// Whether activations that are only read to be rounded are stored rounded (Storage.h), or as the plan says. Results are
/// the same in every bit; a test shows it.
enum class Storage { Rounded, AsPlanned };

/// One launch. A step is one text, or two (in this order) when the rows of its fidelity check are evaluated by a launch of
/// their own: both have the step's function and buffers, and behind them its scratch buffer.
struct KernelText {
  mlir::func::FuncOp function;      ///< whose body it is
  std::vector<unsigned> steps;      ///< numbers of the dispatches that run it; steps of one function whose buffers are
                                    ///< stored in different types have different texts
  std::vector<mlir::Type> stored;   ///< element types of their buffers, operands then results
  std::vector<unsigned> rounded;    ///< operands that the text reads in order to round them, and for nothing else
  bool evaluates = false;           ///< the first of two: it writes the scratch buffer
  std::string name, text;           ///< of the kernel; the whole .cu file
  Dim grid[3] = {1, 1, 1};          ///< blocks; 128 threads each
  int64_t sharedBytes = 0;          ///< dynamic shared memory of a block
  std::vector<std::string> symbols; ///< i64 parameters behind the buffers, by plan symbol; then the dispatch's
                                    ///< capacities; then fault and step when it gathers
  unsigned capacities = 0;
  bool gathers = false;
  Dim scratch = 0; ///< bytes of scratch memory that the step's texts share, 0 when none; the parameter behind the results
};

/// K * R rounded up to panels: above this a check's rows are evaluated once, by a launch before the GEMM, below it in the
/// tiles of the GEMM itself. A tile of 64 rows evaluates one or two (its own and the one that carries), at the price of
/// eight: 118 instructions of a warp per panel and 32 values of d (docs/performance.md), nine panels to a warp at this
/// limit, beside the 8192 FMA that 64 x 512 products of a GEMM in f32 take of it: an eighth.
constexpr int64_t kSplitChecksAbove = 1152;

/// All kernels of the program. The scratch memory that they need becomes buffers of the program, named in the attribute
/// plan::kCudaScratchAttr of the dispatches (a second call finds them there).
llvm::Expected<std::vector<KernelText>> printKernels(mlir::ModuleOp planned, Precision precision = Precision::F32,
                                                     int64_t splitChecksAbove = kSplitChecksAbove,
                                                     Storage storage = Storage::Rounded);

/// All texts as the engine keeps them: before each, a line "//==== NAME".
std::string sourceSection(const std::vector<KernelText> &kernels);
/// The text of one kernel in such a section; nothing when it is not there.
std::optional<std::string> sourceOf(llvm::StringRef section, llvm::StringRef name);

/// The text with every `#include "kernels/..."` replaced by that file (once each), `#line`s naming it: one
/// self-contained file.
std::string flatten(llvm::StringRef text);
/// One file of kernels/cuda or kernels/cpu as it was when this compiler was built; empty for an unknown name.
llvm::StringRef kernelSource(llvm::StringRef name);

} // namespace tare::cuda
