// Code generation alone, for tests and for looking at what it makes: a planned module (`tare-opt --tare-planned`, `tare compile --stop-after planned`) or LLVM dialect as
// text in; the emitted LLVM dialect, optimised LLVM IR, an object file, or the flat section's ELF file (for a disassembler) out. Must hold: exactly what a
// compile does to that module for that level.
#include "compiler/codegen/cpu/Backend.h"
#include "compiler/codegen/cpu/EmitKernels.h"
#include "compiler/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

static llvm::Expected<std::string> make(mlir::ModuleOp module, const std::string &level, const std::string &emit) {
  mlir::OwningOpRef<mlir::ModuleOp> kernels;
  if (!module.getOps<tare::plan::ProgramOp>().empty()) {
    auto made = tare::codegen::emitKernels(module);
    if (!made) return made.takeError();
    kernels = std::move(*made);
    module = *kernels;
  }
  if (emit == "mlir") {
    std::string text;
    llvm::raw_string_ostream(text) << module << "\n";
    return text;
  }
  if (emit == "ir") return tare::optimisedIr(module, level);
  if (emit == "object") return tare::objectFile(module, level);
  auto sections = tare::compileForLevels(module, {level}, 1);
  if (!sections) return sections.takeError();
  return emit == "elf" ? (*sections)[0].elf : (*sections)[0].bytes;
}

int main(int argc, char **argv) {
  CLI::App app{"tare-llc: compiles a planned module or LLVM dialect (MLIR text) for one ISA level as Tare does"};
  std::string input, level = "x86-64-v3", emit = "ir", output = "-";
  app.add_option("INPUT", input, "MLIR text with a plan.program or with tare_entry; - for standard input")->required();
  app.add_option("--level", level, "x86-64-v3, x86-64-v4, avx512-bf16, amx");
  app.add_option("--emit", emit, "mlir, ir, object, elf or flat")->check(CLI::IsMember({"mlir", "ir", "object", "elf", "flat"}));
  app.add_option("-o", output, "output file");
  CLI11_PARSE(app, argc, argv);

  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect, mlir::func::FuncDialect, tare::graph::GraphDialect, tare::plan::PlanDialect>();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(input, &context);
  if (!module) return 3;
  llvm::Expected<std::string> made = make(*module, level, emit);
  if (!made) {
    llvm::errs() << "tare-llc: " << llvm::toString(made.takeError()) << "\n";
    return 1;
  }
  std::error_code error;
  llvm::raw_fd_ostream out(output, error);
  if (error) {
    llvm::errs() << "tare-llc: cannot write " << output << ": " << error.message() << "\n";
    return 6;
  }
  out << *made;
  return 0;
}
