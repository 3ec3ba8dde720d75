// LLVM dialect to machine code, once per ISA level: translate, link the level's microkernels, give every function the level's CPU and features, inline and
// optimise (O3), emit a position-independent object, link it flat. In: the emitter's module; out: CodeSections. Must hold: each level has its own LLVMContext
// and sees the same bitcode, so the result depends neither on threads nor on order.
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/FlatLink.h"
#include "compiler/codegen/cpu/KernelBitcode.h"
#include "compiler/graph/Failure.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include <atomic>
#include <mutex>
#include <thread>

using namespace llvm;

namespace tare {
namespace {

constexpr char triple[] = "x86_64-unknown-linux-gnu";
constexpr char entry[] = "tare_entry";
/// What code generation itself may call; kept until the flat link drops the unused ones (kernels/cpu/support.c).
constexpr StringLiteral support[] = {"memcpy", "memset", "memmove", "memcmp", "fmod", "fmodf", "__truncsfbf2", "__truncdfbf2", "__truncsfhf2", "__truncdfhf2", "__extendhfsf2"};

/// The optimised module of one level with all that owns it.
struct Optimised {
  std::unique_ptr<LLVMContext> context = std::make_unique<LLVMContext>();
  std::unique_ptr<Module> module;
  std::unique_ptr<TargetMachine> machine;
};

Expected<const KernelBitcode *> kernelsOf(StringRef level) {
  for (const KernelBitcode *b = tare_kernel_bitcode; b->level; ++b)
    if (level == b->level) return b;
  return fail(ExitCode::Usage, ("unknown ISA level '" + level + "'").str()).withHint("known levels: x86-64-v3, x86-64-v4, avx512-bf16, amx");
}

Expected<std::string> translate(mlir::ModuleOp module) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  LLVMContext context;
  std::unique_ptr<Module> translated = mlir::translateModuleToLLVMIR(module, context, "tare");
  if (!translated) return fail(ExitCode::Internal, "the emitted module does not translate to LLVM IR");
  std::string bitcode;
  raw_string_ostream out(bitcode);
  WriteBitcodeToFile(*translated, out);
  return bitcode;
}

/// Brings in what the emitted code calls, and the support functions, which only later stages call.
Error linkKernels(Module &module, const KernelBitcode &kernels) {
  auto parsed = parseBitcodeFile(MemoryBufferRef(StringRef(reinterpret_cast<const char *>(kernels.begin), kernels.end - kernels.begin), kernels.level), module.getContext());
  if (!parsed) return parsed.takeError();
  module.setTargetTriple((*parsed)->getTargetTriple());
  module.setDataLayout((*parsed)->getDataLayout());
  for (StringRef name : support)
    if (const Function *f = (*parsed)->getFunction(name)) module.getOrInsertFunction(name, f->getFunctionType());
  if (Linker::linkModules(module, std::move(*parsed), Linker::LinkOnlyNeeded)) return fail(ExitCode::Internal, "the microkernels do not link with the emitted module");
  return Error::success();
}

/// Every function gets the level's CPU, features and vector width (the kernels carry them from their compile): inlining needs them equal, and without them an
/// FMA becomes a call. Nothing unwinds, nothing outside may interpose.
void setAttributes(Module &module, const Function &model) {
  for (Function &f : module) {
    if (f.isDeclaration()) continue;
    for (StringRef key : {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width"})
      if (model.hasFnAttribute(key)) f.addFnAttr(model.getFnAttribute(key));
    f.removeFnAttr("min-legal-vector-width"); // a hook's hint for narrow vectors must not cap its caller's
    f.removeFnAttr("stack-protector-buffer-size");
    f.setUWTableKind(UWTableKind::None);
    f.setDoesNotThrow();
    if (!f.hasLocalLinkage()) f.setVisibility(GlobalValue::HiddenVisibility);
    f.setDSOLocal(true);
  }
  internalizeModule(module, [](const GlobalValue &value) { return value.getName() == entry || is_contained(support, value.getName()); });
}

void runO3(Optimised &level) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = tuning.LoopUnrolling = true;
  PassBuilder builder(level.machine.get(), tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  // Freestanding: no library function is known, so none is recognised and none appears (memcpy and memset come from intrinsics only).
  TargetLibraryInfoImpl library{Triple(triple)};
  library.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(*level.module, modules);
}

Expected<Optimised> optimise(StringRef bitcode, StringRef levelName) {
  Expected<const KernelBitcode *> kernels = kernelsOf(levelName);
  if (!kernels) return kernels.takeError();
  Optimised level;
  auto parsed = parseBitcodeFile(MemoryBufferRef(bitcode, "tare"), *level.context);
  if (!parsed) return parsed.takeError();
  level.module = std::move(*parsed);
  if (Error error = linkKernels(*level.module, **kernels)) return error;
  const Function *model = level.module->getFunction("memcpy");
  setAttributes(*level.module, *model);

  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target) return fail(ExitCode::Internal, message);
  TargetOptions options;
  options.FunctionSections = options.DataSections = true;
  level.machine.reset(target->createTargetMachine(triple, model->getFnAttribute("target-cpu").getValueAsString(), model->getFnAttribute("target-features").getValueAsString(), options, Reloc::PIC_,
                                                  CodeModel::Small, CodeGenOptLevel::Aggressive));
  if (!level.machine) return fail(ExitCode::Internal, "no x86-64 code generator in this LLVM");
  std::string broken;
  raw_string_ostream brokenStream(broken);
  if (verifyModule(*level.module, &brokenStream)) return fail(ExitCode::Internal, "invalid LLVM IR: " + broken);
  runO3(level);
  return level;
}

Expected<std::string> emitObject(Optimised &level) {
  SmallString<0> bytes;
  raw_svector_ostream out(bytes);
  legacy::PassManager passes;
  auto *library = new TargetLibraryInfoWrapperPass(Triple(triple)); // owned by `passes`
  passes.add(library);
  if (level.machine->addPassesToEmitFile(passes, out, nullptr, CodeGenFileType::ObjectFile)) return fail(ExitCode::Internal, "no object emitter in this LLVM");
  passes.run(*level.module);
  return bytes.str().str();
}

void initialiseTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // the kernels hold (empty) inline assembly
  });
}

Expected<CodeSection> compileOne(StringRef bitcode, StringRef level) {
  Expected<Optimised> optimised = optimise(bitcode, level);
  if (!optimised) return optimised.takeError();
  Expected<std::string> object = emitObject(*optimised);
  if (!object) return object.takeError();
  return linkFlat(*object, level);
}

} // namespace

Expected<std::vector<CodeSection>> compileForLevels(mlir::ModuleOp module, ArrayRef<std::string> levels, unsigned threads,
                                                    function_ref<void(const std::string &)> working) {
  initialiseTarget();
  Expected<std::string> bitcode = translate(module);
  if (!bitcode) return bitcode.takeError();
  std::vector<std::optional<Expected<CodeSection>>> results(levels.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < levels.size();) {
      if (working) working(levels[i]);
      results[i].emplace(compileOne(*bitcode, levels[i]));
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(threads, levels.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers) helper.join();

  std::vector<CodeSection> sections;
  Error errors = Error::success();
  for (std::optional<Expected<CodeSection>> &result : results) {
    if (!*result) errors = joinErrors(std::move(errors), result->takeError());
    else sections.push_back(std::move(**result));
  }
  if (errors) return std::move(errors);
  return sections;
}

Expected<std::string> optimisedIr(mlir::ModuleOp module, StringRef level) {
  initialiseTarget();
  Expected<std::string> bitcode = translate(module);
  if (!bitcode) return bitcode.takeError();
  Expected<Optimised> optimised = optimise(*bitcode, level);
  if (!optimised) return optimised.takeError();
  std::string text;
  raw_string_ostream out(text);
  optimised->module->print(out, nullptr);
  return text;
}

Expected<std::string> objectFile(mlir::ModuleOp module, StringRef level) {
  initialiseTarget();
  Expected<std::string> bitcode = translate(module);
  if (!bitcode) return bitcode.takeError();
  Expected<Optimised> optimised = optimise(*bitcode, level);
  if (!optimised) return optimised.takeError();
  return emitObject(*optimised);
}

} // namespace tare
