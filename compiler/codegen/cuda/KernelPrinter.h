// The printer of one kernel (docs/architecture.md "Fusion groups"): a template call of kernels/cuda with the pulled
// expressions as lambdas, put into kernel.cu.in. In: a kernel function of the plan, the nodes that run it, options. Out:
// its texts. PrintKernels.cpp has what all kinds share and the loops, the other files one kind of group each. Must hold:
// a kind's printer returns false before it has printed anything when its template does not take the group.
#pragma once
#include "compiler/codegen/cuda/Kernels.h"
#include "compiler/codegen/cuda/Printer.h"
#include "compiler/plan/Kernels.h"

namespace tare::cuda {

struct Target {
  mlir::Value value;
  Memory memory;
  llvm::SmallVector<Dim> offset; // empty: 0
};

class KernelPrinter {
public:
  /// `name`: of the kernel in its text; `stored`: element types of its buffers, operands then results.
  KernelPrinter(mlir::func::FuncOp function, std::string name, llvm::ArrayRef<std::string> nodes,
                llvm::ArrayRef<mlir::Type> stored, Precision precision, int64_t splitChecksAbove);
  llvm::Expected<std::vector<KernelText>> print();

private:
  Printer printer(unsigned depth);
  llvm::Error missing(mlir::Operation &op);
  llvm::Error refuseUnknown();
  /// Element `at` of every result of the kernel.
  void storeResults(Printer &p, Indices at);
  /// A loop over the targets' common space, one thread per element, or a warp where it sums up rows (PrintReduce.cpp).
  void nest(Printer &p, llvm::ArrayRef<Target> targets);
  /// Enough blocks for `count` elements, `perBlock` in each.
  void cover(const Dim &count, int64_t perBlock);
  void pointwise(Printer &p);
  /// A cache and new rows; in place when both have one address.
  void append(Printer &p);
  bool row(Printer &p);
  bool dependsOnRoot(mlir::Value v, mlir::Operation *root);
  /// The text reads these operands of the body's root in order to round them: noted unless something else reads them, too.
  void notesRounded(mlir::ValueRange values);
  /// Symbols that the text uses, in the plan's spelling.
  void collectSymbols();
  /// The whole .cu of one launch.
  void finish(KernelText &text, const std::string &body, llvm::StringRef qualifier);

  // PrintGemm.cpp
  bool gemm(Printer &p);
  /// Grid and shared memory of a GEMM, and the lines that say its sizes.
  void gemmShape(Printer &p, const Dim &rows, const Dim &columns, const Dim &depth, mlir::Type weights);
  /// The same GEMM in tiles of 128 x 128; nothing when this one's tiles serve all launches.
  llvm::Expected<std::optional<KernelText>> largeTiles();
  std::optional<std::string> checkedCall(Printer &p, graph::FidelityCheckOp check, const Memory &a, const Memory &w,
                                         const Memory &out, const Dim &rows, const Dim &columns);
  /// Products of f16 or bf16 operands, which memory may hold, too.
  bool halfOperands() const { return precision == Precision::F16 || precision == Precision::BF16; }
  /// The type of a tensor core's operands.
  std::string operandType() const { return precision == Precision::F16 ? "f16" : precision == Precision::BF16 ? "bf16" : "tf32"; }
  /// The GEMM template of the precision, "gemm_f32" or its like, and its sizes, "GemmF32".
  std::string gemmName() const { return halfOperands() ? "gemm_mma" : precision == Precision::TF32 ? "gemm_tf32" : "gemm_f32"; }
  std::string gemmSizes() const { return halfOperands() ? large ? "GemmMmaLarge" : "GemmMma" : precision == Precision::TF32 ? "GemmTf32" : "GemmF32"; }
  bool batchMatmul(Printer &p);
  // PrintAttention.cpp
  bool attention(Printer &p);
  /// The targets of a nest sum up rows whose elements are neighbours in memory: a warp each.
  bool wantsWarps(llvm::ArrayRef<Target> targets);

  mlir::func::FuncOp function;
  mlir::Block &block;
  llvm::StringRef kind;
  llvm::ArrayRef<std::string> nodes;
  Precision precision;
  int64_t splitChecksAbove;
  KernelText kernel;
  std::string evaluation; // the body of the launch before the kernel's, when there is one
  Dim evaluationBlocks = 1;
  int64_t evaluationBytes = 0; // of shared memory
  llvm::SmallVector<Memory> operands;
  llvm::SmallVector<Target> results;
  llvm::SmallVector<std::string> includes;
  std::string runOf, eOf; // of a fused check: the parameter that says which rows are evaluated, and E
  bool covered = false, wide = false, roomy = false;
  bool large = false;  // a GEMM in tiles of 128 x 128
  Dim whenLarge = 0;   // 1 for the launches that such tiles serve, else 0
};

inline mlir::Type elementType(mlir::Value tensor) { return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType(); }

} // namespace tare::cuda
