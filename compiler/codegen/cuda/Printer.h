// The tool that every CUDA kernel printer works with: one Printer per function body. In: a kernel (graph ops over
// tensors) and names of its buffers. Out: lines of C++ in the vocabulary of kernels/cuda that compute single elements.
// As on the CPU, any value of the body can be pulled at given indices: moving ops become index arithmetic, pointwise
// ops become expressions, arguments become loads. Must hold: equal bodies print equal text; indices are i64
// expressions.
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <string>

namespace tare::cuda {

/// Where a tensor lies: the buffer's name in the text, how it is stored, its dims for addressing.
struct Memory {
  std::string name;
  mlir::Type element;
  Dims physical;
  std::string packing = "raw";                         ///< Plan.td
  bool panels() const { return packing == "panel32"; } ///< [ceil(n/32)][k][32]
};

using Index = std::string;
using Indices = llvm::ArrayRef<Index>;

/// The C++ type of one computed element (f16 and bf16 compute in float) and of one stored element.
std::string scalarType(mlir::Type element);
std::string storageType(mlir::Type element);
/// A name that C++ takes, for a symbol of the plan: d_batch.
std::string symbolName(llvm::StringRef symbol);
/// A size as C++; `brackets` when it must be one operand.
std::string dimText(const Dim &d, bool brackets = false);
bool isNumber(llvm::StringRef text, int64_t *value = nullptr);

class Printer {
public:
  explicit Printer(unsigned depth = 1) : depth(depth) { memos.emplace_back(); }

  llvm::DenseMap<mlir::Value, Memory> memory;
  bool lanes = false; ///< a reduction is shared by the lanes of a warp, which all get its result
  bool flat = false; ///< one linear index for every tensor of more than one element
  std::string text;  ///< the lines so far

  void line(const llvm::Twine &words);
  void open(const llvm::Twine &words); ///< a line, then a deeper scope
  void close(const llvm::Twine &words = "}");
  std::string fresh(llvm::StringRef prefix) { return (prefix + std::to_string(counter++)).str(); }

  /// The scalar at these indices: a name or a literal; lines that compute it are added.
  std::string element(mlir::Value tensor, Indices indices);
  void bind(mlir::Value tensor, Indices indices, const std::string &scalar);
  void store(const Memory &m, Indices indices, const std::string &scalar);
  std::string load(const Memory &m, Indices indices);
  std::string cast(const std::string &scalar, mlir::Type from, mlir::Type to);
  std::string unary(graph::UnaryKind kind, const std::string &x, mlir::Type element);
  std::string binary(graph::BinaryKind kind, const std::string &x, const std::string &y, mlir::Type element);

  Index add(const Index &a, const Index &b);
  Index sub(const Index &a, const Index &b);
  Index mul(const Index &a, const Index &b);
  Index div(const Index &a, const Index &b); ///< non-negative / positive
  Index rem(const Index &a, const Index &b);
  Index dim(const Dim &d) { return dimText(d, true); }
  Index linear(Indices indices, llvm::ArrayRef<Dim> dims);
  llvm::SmallVector<Index> delinearise(const Index &index, llvm::ArrayRef<Dim> dims);
  llvm::SmallVector<Index> broadcast(mlir::Value operand, Indices indices, llvm::ArrayRef<Dim> dims);
  /// Where a product reads one of its operands: `first` and `second` are its last two indices (empty where it has none).
  llvm::SmallVector<Index> operandIndices(graph::MatmulOp op, mlir::Value operand, Indices batch, const Index &first,
                                          const Index &second);
  llvm::SmallVector<Index> reshapeIndices(Indices indices, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to);

private:
  std::string named(const std::string &type, const std::string &expression, llvm::StringRef prefix = "v");
  std::string pull(mlir::Value tensor, Indices indices);
  std::string pullMoving(mlir::Value tensor, Indices indices);
  std::string pullConcat(graph::ConcatOp op, Indices indices);
  std::string pullPad(graph::PadOp op, Indices indices);
  std::string pullDequantize(graph::DequantizeOp op, Indices indices);
  std::string pullReduce(graph::ReduceOp op, Indices indices);
  std::string pullCumSum(graph::CumSumOp op, Indices indices);
  std::string pullMatmul(graph::MatmulOp op, Indices indices);
  std::string checkedIndex(const std::string &index, mlir::Type element, const Dim &size);
  /// `T name; if (cond) name = yes; else name = no;`
  std::string choose(const std::string &cond, mlir::Type element, llvm::function_ref<std::string()> yes,
                     llvm::function_ref<std::string()> no);
  /// Nested loops over `dims`; the body gets the indices.
  void nest(llvm::ArrayRef<Dim> dims, llvm::function_ref<void(Indices)> body);

  unsigned depth, counter = 0;
  std::map<std::string, Index> flatIndex; ///< what delinearise took apart, by its parts
  std::vector<std::map<std::string, std::string>> memos;
};

/// The name of the step and fault parameters that checked gathers use.
inline constexpr llvm::StringLiteral kFault = "fault", kStep = "step";
/// And of the scratch buffer that the launches of one step share.
inline constexpr llvm::StringLiteral kScratch = "distances";
bool gathers(mlir::func::FuncOp body);

/// The lines without constants that no other line uses; names must be unique in the text.
std::string withoutUnused(llvm::StringRef text);

/// A literal of a scalar type, exact.
std::string literal(mlir::Type element, mlir::Attribute value);
std::string number(mlir::Type element, double value);

} // namespace tare::cuda
