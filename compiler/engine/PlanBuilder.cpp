// The plan section: one FlatBuffers table per noun of the plan dialect, in the same order.
#include "compiler/engine/PlanBuilder.h"
#include "compiler/codegen/cuda/Launches.h"
#include "compiler/graph/Failure.h"
#include "runtime/engine_generated.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using llvm::Error;

namespace tare {
namespace {
Error bug(std::string what) { return fail(ExitCode::Internal, "the plan cannot be written: " + what); }

std::optional<fb::DType> dtypeOf(Type type) {
  if (type.isF32()) return fb::DType::F32;
  if (type.isF64()) return fb::DType::F64;
  if (type.isF16()) return fb::DType::F16;
  if (type.isBF16()) return fb::DType::BF16;
  bool isUnsigned = type.isUnsignedInteger();
  if (!type.isIntOrIndex() || type.isIndex()) return std::nullopt;
  switch (type.getIntOrFloatBitWidth()) {
  case 1: return fb::DType::Bool;
  case 8: return isUnsigned ? fb::DType::U8 : fb::DType::I8;
  case 16: return isUnsigned ? fb::DType::U16 : fb::DType::I16;
  case 32: return isUnsigned ? fb::DType::U32 : fb::DType::I32;
  case 64: return isUnsigned ? fb::DType::U64 : fb::DType::I64;
  default: return std::nullopt;
  }
}

class PlanBuilder {
public:
  PlanBuilder(const EngineContents &contents, plan::ProgramOp program) : contents(contents), module(contents.planned), program(program) {
    for (Attribute name : program.getSymbols()) symbols.push_back(cast<StringAttr>(name).getValue().str());
    for (const Dim &dim : program.getDims().dims()) index(dim);
  }
  llvm::Expected<std::string> build(const std::map<size_t, uint64_t> &weightOffsets, const std::vector<CodePlace> &code, const std::vector<ImagePlace> &images);

private:
  uint32_t index(const Dim &dim) {
    auto [at, isNew] = indexOf.try_emplace(dim.str(), static_cast<uint32_t>(dims.size()));
    if (isNew) dims.push_back(dim);
    return at->second;
  }
  llvm::Error addTensors();
  llvm::Error addTensor(Type type, StringAttr name, StringAttr defaultKind, std::vector<std::unique_ptr<fb::TensorT>> &to);
  llvm::Error addBuffers(const std::map<size_t, uint64_t> &weightOffsets);
  void addSteps();
  llvm::Error addStates();
  llvm::Error addChecks();
  llvm::Error addConstraints();
  void addCuda(const std::vector<ImagePlace> &images);

  const EngineContents &contents;
  ModuleOp module;
  plan::ProgramOp program;
  std::vector<std::string> symbols;
  std::vector<Dim> dims;
  llvm::StringMap<uint32_t> indexOf;
  Dim flops, bytes;
  fb::PlanT out;
};

llvm::Error PlanBuilder::addTensor(Type type, StringAttr name, StringAttr defaultKind, std::vector<std::unique_ptr<fb::TensorT>> &to) {
  auto tensorType = dyn_cast<RankedTensorType>(type);
  if (!tensorType || !name) return bug("an input or output of main without a tensor type or a name");
  auto dtype = dtypeOf(tensorType.getElementType());
  if (!dtype) return refuse("inputs and outputs of this element type cannot cross the runtime's border").ofTensor(name.str());
  auto tensor = std::make_unique<fb::TensorT>();
  tensor->name = name.str(), tensor->dtype = *dtype;
  for (const Dim &dim : graph::dimsOf(tensorType)) tensor->dims.push_back(index(dim));
  if (defaultKind) tensor->optional = true, tensor->default_kind = defaultKind.str();
  to.push_back(std::move(tensor));
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addTensors() {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main) return bug("no function main");
  for (unsigned i = 0; i < main.getFunctionType().getNumInputs(); ++i)
    if (auto error = addTensor(main.getFunctionType().getInput(i), main.getArgAttrOfType<StringAttr>(i, graph::kNameAttr), main.getArgAttrOfType<StringAttr>(i, graph::kDefaultAttr), out.inputs))
      return error;
  for (unsigned i = 0; i < main.getFunctionType().getNumResults(); ++i)
    if (auto error = addTensor(main.getFunctionType().getResult(i), main.getResultAttrOfType<StringAttr>(i, graph::kNameAttr), {}, out.outputs)) return error;
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addBuffers(const std::map<size_t, uint64_t> &weightOffsets) {
  for (auto op : program.getBody().front().getOps<plan::BufferOp>()) {
    auto buffer = std::make_unique<fb::BufferT>();
    static const std::pair<StringRef, fb::BufferKind> kinds[] = {{"input", fb::BufferKind::Input}, {"output", fb::BufferKind::Output}, {"weight", fb::BufferKind::Weight},
                                                                 {"arena", fb::BufferKind::Arena}, {"per_thread", fb::BufferKind::PerThread}, {"check", fb::BufferKind::Check}};
    auto *kind = llvm::find_if(kinds, [&](auto &k) { return k.first == op.getKind(); });
    if (kind == std::end(kinds)) return bug("unknown buffer kind '" + op.getKind().str() + "'");
    buffer->kind = kind->second;
    buffer->bytes = index(op.getBytes().dims().front());
    buffer->tensor = static_cast<int32_t>(op.getTensor());
    buffer->first_step = static_cast<uint32_t>(op.getFirst()), buffer->last_step = static_cast<uint32_t>(op.getLast());
    buffer->name = op.getName().str();
    if (buffer->kind == fb::BufferKind::Weight) {
      auto offset = weightOffsets.find(out.buffers.size());
      if (offset == weightOffsets.end()) return bug("a weight was not packed");
      buffer->offset = offset->second;
    }
    out.buffers.push_back(std::move(buffer));
  }
  return llvm::Error::success();
}

void PlanBuilder::addSteps() {
  for (auto op : program.getBody().front().getOps<plan::DispatchOp>()) {
    auto step = std::make_unique<fb::StepT>();
    step->name = graph::nodeName(op.getLoc());
    step->kernel = op.getKernel().str(), step->kind = op.getKind().str();
    if (step->name.empty()) step->name = step->kernel;
    for (int64_t buffer : op.getOperands()) step->buffers.push_back(static_cast<uint32_t>(buffer));
    step->operand_count = static_cast<uint32_t>(op.getOperands().size());
    for (int64_t buffer : op.getResults()) step->buffers.push_back(static_cast<uint32_t>(buffer));
    if (auto scratch = op->getAttrOfType<IntegerAttr>(plan::kCudaScratchAttr)) step->buffers.push_back(static_cast<uint32_t>(scratch.getInt()));
    step->flops = index(op.getFlops().dims().front()), step->bytes = index(op.getBytes().dims().front());
    flops = flops + op.getFlops().dims().front(), bytes = bytes + op.getBytes().dims().front();
    if (auto scope = op->getAttrOfType<StringAttr>(graph::kScopeAttr)) step->layer = scope.str();
    out.steps.push_back(std::move(step));
  }
}

llvm::Error PlanBuilder::addStates() {
  auto all = program->getAttrOfType<ArrayAttr>(plan::kStatesAttr);
  for (auto entry : all ? all.getAsRange<DictionaryAttr>() : ArrayAttr::get(program.getContext(), {}).getAsRange<DictionaryAttr>()) {
    auto state = std::make_unique<fb::StateT>();
    auto number = [&](StringRef key) { auto a = entry.getAs<IntegerAttr>(key); return a ? static_cast<uint32_t>(a.getInt()) : ~0u; };
    auto symbol = [&](StringRef key) {
      auto a = entry.getAs<StringAttr>(key);
      return static_cast<uint32_t>(a ? llvm::find(symbols, a.str()) - symbols.begin() : symbols.size());
    };
    state->input = number("input"), state->output = number("output"), state->axis = number("axis");
    state->input_capacity_symbol = symbol("input_capacity"), state->output_capacity_symbol = symbol("output_capacity");
    if (state->input_capacity_symbol >= symbols.size() || state->output_capacity_symbol >= symbols.size()) return bug("a state's capacity is not a symbol of the program");
    out.states.push_back(std::move(state));
  }
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addChecks() {
  auto input = program->getAttrOfType<DictionaryAttr>(plan::kCheckInputAttr);
  auto items = program->getAttrOfType<ArrayAttr>(plan::kChecksAttr);
  if (!input || !items) return llvm::Error::success();
  auto number = [](DictionaryAttr d, StringRef key) { auto a = d.getAs<IntegerAttr>(key); return a ? a.getInt() : 0; };
  auto checks = std::make_unique<fb::ChecksT>();
  checks->anchors = static_cast<uint32_t>(number(input, "anchors")), checks->mask = static_cast<int32_t>(number(input, "mask")), checks->window = static_cast<uint32_t>(number(input, "window"));
  for (auto [key, to] : {std::pair("batch", &checks->batch), std::pair("tokens", &checks->tokens), std::pair("past", &checks->past)}) {
    auto dim = input.getAs<graph::DimsAttr>(key);
    if (!dim) return bug("the checks do not say which dimension is their " + std::string(key));
    *to = index(dim.dims().front());
  }
  for (auto entry : items.getAsRange<DictionaryAttr>()) {
    auto check = std::make_unique<fb::CheckT>();
    auto precision = entry.getAs<StringAttr>("precision");
    if (!precision) return bug("a check without a precision");
    check->heads = static_cast<uint32_t>(number(entry, "heads")), check->rank = static_cast<uint32_t>(number(entry, "rank")), check->precision = precision.str();
    check->flops_per_row = static_cast<uint64_t>(number(entry, "flops")), check->weight_bytes = static_cast<uint64_t>(number(entry, "weights"));
    checks->items.push_back(std::move(check));
  }
  checks->fidelity = contents.fidelity.value_or(-1);
  out.checks = std::move(checks);
  return llvm::Error::success();
}

llvm::Error PlanBuilder::addConstraints() {
  auto all = module->getAttrOfType<ArrayAttr>(graph::kConstraintsAttr);
  if (!all) return llvm::Error::success();
  for (auto entry : all.getAsRange<DictionaryAttr>()) {
    auto kind = entry.getAs<StringAttr>("kind"), message = entry.getAs<StringAttr>("message");
    auto a = entry.getAs<graph::DimsAttr>("a"), b = entry.getAs<graph::DimsAttr>("b");
    if (!kind || !message || !a || !b) return bug("a constraint without kind, a, b or message");
    auto constraint = std::make_unique<fb::ConstraintT>();
    constraint->kind = kind.getValue() == "equal" ? fb::ConstraintKind::Equal : fb::ConstraintKind::AtMost;
    constraint->a = index(a.dims().front()), constraint->b = index(b.dims().front());
    constraint->message = message.str();
    out.constraints.push_back(std::move(constraint));
  }
  return llvm::Error::success();
}

void PlanBuilder::addCuda(const std::vector<ImagePlace> &images) {
  if (!contents.cuda) return;
  out.cuda = std::make_unique<fb::CudaT>();
  out.cuda->precision = contents.cuda->precision;
  for (const cuda::KernelText &k : contents.cuda->kernels) {
    auto kernel = std::make_unique<fb::CudaKernelT>();
    kernel->name = k.name, kernel->threads = cuda::kBlockThreads, kernel->shared_bytes = static_cast<uint32_t>(k.sharedBytes);
    out.cuda->kernels.push_back(std::move(kernel));
  }
  for (const cuda::Launch &l : cuda::launchesOf(module, contents.cuda->kernels)) {
    auto launch = std::make_unique<fb::CudaLaunchT>();
    launch->step = l.step, launch->kernel = static_cast<uint32_t>(l.kernel - contents.cuda->kernels.data());
    for (const Dim &dim : l.kernel->grid) launch->grid.push_back(index(dim));
    for (const cuda::LaunchArgument &a : l.arguments) {
      static constexpr fb::CudaArgumentKind kinds[] = {fb::CudaArgumentKind::Buffer, fb::CudaArgumentKind::Dim, fb::CudaArgumentKind::Check, fb::CudaArgumentKind::Fault, fb::CudaArgumentKind::Step,
                                                       fb::CudaArgumentKind::Anchors};
      launch->arguments.emplace_back(kinds[a.kind], a.kind == cuda::LaunchArgument::Dim ? index(a.dim) : a.position);
    }
    out.cuda->launches.push_back(std::move(launch));
  }
  for (const ImagePlace &place : images) {
    auto image = std::make_unique<fb::CudaImageT>();
    image->arch = place.architecture, image->section = place.section, image->offsets = place.offsets, image->sizes = place.sizes;
    out.cuda->images.push_back(std::move(image));
  }
}

llvm::Expected<std::string> PlanBuilder::build(const std::map<size_t, uint64_t> &weightOffsets, const std::vector<CodePlace> &code, const std::vector<ImagePlace> &images) {
  if (auto error = addTensors()) return std::move(error);
  if (auto error = addBuffers(weightOffsets)) return std::move(error);
  addSteps();
  if (auto error = addStates()) return std::move(error);
  if (auto error = addChecks()) return std::move(error);
  if (auto error = addConstraints()) return std::move(error);
  addCuda(images);
  for (const CodePlace &place : code) {
    auto variant = std::make_unique<fb::CodeVariantT>();
    variant->level = place.level, variant->section = place.section, variant->text_bytes = place.textBytes;
    out.code.push_back(std::move(variant));
  }
  out.flops = index(contents.flops.value_or(flops)), out.bytes = index(contents.bytes.value_or(bytes));
  out.full_flops = index(contents.fullFlops.value_or(flops)), out.full_bytes = index(contents.fullBytes.value_or(bytes));
  out.pruned_layers = contents.prunedLayers;
  out.zero_rate = contents.zeroRate;
  out.symbols = symbols;
  for (const Dim &dim : dims) { // last: everything above may have added some
    for (const std::string &name : dim.symbols())
      if (!llvm::is_contained(symbols, name)) return bug("symbol '" + name + "' of '" + dim.str() + "' is not in the program");
    auto entry = std::make_unique<fb::DimProgramT>();
    entry->code = dim.program(symbols), entry->text = dim.str();
    out.dims.push_back(std::move(entry));
  }
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &out));
  return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
}
} // namespace

llvm::Expected<plan::ProgramOp> findProgram(ModuleOp planned) {
  auto programs = planned.getOps<plan::ProgramOp>();
  if (programs.empty() || std::next(programs.begin()) != programs.end()) return bug("the module does not hold exactly one plan.program");
  return *programs.begin();
}

llvm::Expected<std::string> buildPlan(const EngineContents &contents, const std::map<size_t, uint64_t> &weightOffsets, const std::vector<CodePlace> &code, const std::vector<ImagePlace> &images) {
  auto program = findProgram(contents.planned);
  if (!program) return program.takeError();
  return PlanBuilder(contents, *program).build(weightOffsets, code, images);
}

} // namespace tare
