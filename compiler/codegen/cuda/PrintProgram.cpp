// All kernels of a program: one text for the steps of one kernel function whose buffers are stored alike. In: a planned
// module. Out: texts in the order of their first steps; scratch buffers in the module.
#include "compiler/codegen/cuda/KernelPrinter.h"
#include "compiler/codegen/cuda/Storage.h"
#include "compiler/graph/Failure.h"

using namespace mlir;

namespace tare::cuda {

std::optional<Precision> precisionOf(StringRef name) {
  if (name == "f32") return Precision::F32;
  if (name == "tf32") return Precision::TF32;
  if (name == "f16") return Precision::F16;
  if (name == "bf16") return Precision::BF16;
  return std::nullopt;
}

/// Gives every dispatch of the kernel a scratch buffer, unless it has one.
static void addScratch(ModuleOp planned, KernelText &text) {
  plan::ProgramOp program = *planned.getOps<plan::ProgramOp>().begin();
  OpBuilder b(planned.getContext());
  int64_t number = 0;
  for (auto step : program.getBody().getOps<plan::DispatchOp>()) {
    int64_t own = number++;
    if (step.getKernel() != text.function.getSymName() || step->hasAttr(plan::kCudaScratchAttr)) continue;
    SmallVector<plan::BufferOp> buffers(program.getBody().getOps<plan::BufferOp>());
    b.setInsertionPointAfter(buffers.back());
    auto type = RankedTensorType::get({ShapedType::kDynamic}, b.getF32Type());
    b.create<plan::BufferOp>(step.getLoc(), "arena", "check distances", type,
                             graph::DimsAttr::get(planned.getContext(), text.scratch), -1, own, own, "raw",
                             graph::DimsAttr(), ElementsAttr());
    step->setAttr(plan::kCudaScratchAttr, b.getI64IntegerAttr(static_cast<int64_t>(buffers.size())));
  }
}

/// Bytes at the start of `rest` that a comment must not show: what ends the line or begins another text (control
/// characters, a backslash, a trigraph), what turns the reading direction or breaks lines.
static size_t hiddenBytes(StringRef rest) {
  for (StringRef mark : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c", "\u202d",
                         "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"})
    if (rest.starts_with(mark)) return mark.size();
  auto first = static_cast<unsigned char>(rest[0]);
  if (first == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0) return 2; // more control characters
  return first < 32 || first == 127 || first == '\\' || rest.starts_with("??/") ? 1 : 0;
}

/// A node's name (UTF-8) is the model's: in a comment it must neither end the line nor show anything but itself.
static std::string commentText(StringRef name) {
  std::string text;
  while (!name.empty()) {
    size_t hidden = hiddenBytes(name);
    text += hidden ? '_' : name[0];
    name = name.drop_front(std::max<size_t>(hidden, 1));
  }
  return text;
}

namespace {
/// Steps that run one text: those of one kernel function whose buffers are stored in the same types.
struct Use {
  func::FuncOp function;
  std::vector<Type> stored; // operands, then results
  std::vector<std::string> nodes;
  std::vector<unsigned> steps;
};

/// What all texts of a program are printed with.
struct PrintedFrom {
  ModuleOp planned;
  Precision precision;
  int64_t splitChecksAbove;
  plan::ProgramOp program() { return *planned.getOps<plan::ProgramOp>().begin(); }
};
} // namespace

/// In the order of their first steps. `rounded` holds the buffers that are stored as `type`.
static llvm::Expected<std::vector<Use>> usesOf(PrintedFrom &from, const llvm::BitVector &rounded, Type type) {
  std::vector<Use> uses;
  std::map<std::pair<StringRef, std::vector<bool>>, size_t> place;
  for (auto [number, step] : llvm::enumerate(from.program().getBody().getOps<plan::DispatchOp>())) {
    auto function = from.planned.lookupSymbol<func::FuncOp>(step.getKernel());
    if (!function) return fail(ExitCode::Internal, ("the plan calls a kernel that is not there: " + step.getKernel()).str());
    SmallVector<int64_t> buffers(step.getOperands());
    llvm::append_range(buffers, step.getResults());
    std::vector<bool> isRounded;
    for (int64_t buffer : buffers)
      isRounded.push_back(rounded.test(buffer));
    auto [at, isNew] = place.try_emplace({step.getKernel(), isRounded}, uses.size());
    if (isNew) {
      Use use{function, {}, {}, {}};
      SmallVector<Type> tensors(function.getArgumentTypes());
      llvm::append_range(tensors, function.getResultTypes());
      for (auto [tensor, narrow] : llvm::zip_equal(tensors, isRounded))
        use.stored.push_back(narrow ? type : cast<RankedTensorType>(tensor).getElementType());
      uses.push_back(std::move(use));
    }
    uses[at->second].nodes.push_back(commentText(graph::nodeName(step.getLoc())));
    uses[at->second].steps.push_back(static_cast<unsigned>(number));
  }
  return uses;
}

static llvm::Expected<std::vector<KernelText>> printUses(PrintedFrom &from, const std::vector<Use> &uses) {
  std::vector<KernelText> kernels;
  llvm::StringMap<unsigned> variants;
  for (const Use &use : uses) {
    func::FuncOp function = use.function;
    unsigned variant = ++variants[function.getSymName()];
    std::string name = function.getSymName().str() + (variant > 1 ? "_stored" + std::to_string(variant) : "");
    auto texts = KernelPrinter(function, name, use.nodes, use.stored, from.precision, from.splitChecksAbove).print();
    if (!texts) return texts.takeError();
    for (auto &text : *texts) {
      text.steps = use.steps;
      kernels.push_back(std::move(text));
    }
  }
  return kernels;
}

/// The buffers that are stored as operands of tensor cores. Which operands a text rounds is known once it is printed.
static llvm::Expected<llvm::BitVector> roundedBuffersOf(PrintedFrom &from) {
  plan::ProgramOp program = from.program();
  llvm::BitVector none(llvm::range_size(program.getBody().getOps<plan::BufferOp>()));
  auto uses = usesOf(from, none, Type());
  if (!uses) return uses.takeError();
  auto texts = printUses(from, *uses);
  if (!texts) return texts.takeError();
  RoundedOperands operands;
  for (KernelText &text : *texts)
    if (!text.evaluates) operands[text.function.getSymName()] = text.rounded;
  return roundedBuffers(program, operands);
}

/// What tensor cores multiply, when memory can hold it in fewer bytes than f32.
static Type narrowType(Precision precision, MLIRContext *context) {
  if (precision == Precision::F16) return Float16Type::get(context);
  if (precision == Precision::BF16) return BFloat16Type::get(context);
  return {};
}

llvm::Expected<std::vector<KernelText>> printKernels(ModuleOp planned, Precision precision, int64_t splitChecksAbove,
                                                     Storage storage) {
  PrintedFrom from{planned, precision, splitChecksAbove};
  llvm::BitVector rounded(llvm::range_size(from.program().getBody().getOps<plan::BufferOp>()));
  Type narrow = narrowType(precision, planned.getContext());
  if (narrow && storage == Storage::Rounded) {
    auto found = roundedBuffersOf(from);
    if (!found) return found.takeError();
    rounded = std::move(*found);
  }
  auto uses = usesOf(from, rounded, narrow);
  if (!uses) return uses.takeError();
  auto kernels = printUses(from, *uses);
  if (kernels)
    for (KernelText &text : *kernels)
      if (!text.evaluates && !text.scratch.isConstant(0)) addScratch(planned, text);
  return kernels;
}

} // namespace tare::cuda
