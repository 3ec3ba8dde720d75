// The back end alone, for tests and for looking at what it makes: LLVM dialect as text in; optimised LLVM IR, an object file, or the flat section's ELF file
// (for a disassembler) out. Must hold: exactly what a compile does to that module for that level.
#include "compiler/codegen/cpu/Backend.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

static llvm::Expected<std::string> make(mlir::ModuleOp module, const std::string &level, const std::string &emit) {
  if (emit == "ir") return tare::optimisedIr(module, level);
  if (emit == "object") return tare::objectFile(module, level);
  auto sections = tare::compileForLevels(module, {level}, 1);
  if (!sections) return sections.takeError();
  return emit == "elf" ? (*sections)[0].elf : (*sections)[0].bytes;
}

int main(int argc, char **argv) {
  CLI::App app{"tare-llc: compiles LLVM dialect (MLIR text) for one ISA level with Tare's back end"};
  std::string input, level = "x86-64-v3", emit = "ir", output = "-";
  app.add_option("INPUT", input, "MLIR text with tare_entry")->required();
  app.add_option("--level", level, "x86-64-v3, x86-64-v4, avx512-bf16, amx");
  app.add_option("--emit", emit, "ir, object, elf or flat")->check(CLI::IsMember({"ir", "object", "elf", "flat"}));
  app.add_option("-o", output, "output file");
  CLI11_PARSE(app, argc, argv);

  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect>();
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
