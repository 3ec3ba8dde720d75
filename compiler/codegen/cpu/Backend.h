// The back end: an LLVM-dialect module becomes one flat code section per ISA level. In: kernels and `tare_entry`, which call into kernels/cpu;
// out: bytes that run from any address of a read-only executable mapping. Must hold: position independent, no writable data, no undefined symbol.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tare {

/// One level's machine code. `bytes`: .text then .rodata, `tare_entry` (runtime/code_abi.h) at offset 0; both parts keep their distance when mapped.
struct CodeSection {
  std::string level;      ///< "x86-64-v3", "x86-64-v4", "avx512-bf16", "amx"
  std::string bytes;      ///< to be mapped readable and executable, never writable, at any page boundary
  std::string elf;        ///< the same code as an ELF file with symbols, addresses = offsets in `bytes` (for profilers and debuggers)
  uint64_t textBytes = 0; ///< size of the executable part; constants follow
};

/// Compiles for every level, at most `threads` at a time; the result has the order of `levels` and does not depend on `threads`.
/// Fails with Failure: a symbol that nobody defines, writable data, an absolute relocation (exit code 1), an unknown level (exit code 2),
/// no temporary folder (exit code 6).
/// `working` is told each level as it begins, from any of the threads.
llvm::Expected<std::vector<CodeSection>> compileForLevels(mlir::ModuleOp llvmDialect, llvm::ArrayRef<std::string> levels, unsigned threads,
                                                          llvm::function_ref<void(const std::string &)> working = {});

/// The optimised LLVM IR of one level as text, for tests and `--stop-after`-style inspection.
llvm::Expected<std::string> optimisedIr(mlir::ModuleOp llvmDialect, llvm::StringRef level);

/// The object file of one level before the flat link, for tests.
llvm::Expected<std::string> objectFile(mlir::ModuleOp llvmDialect, llvm::StringRef level);

} // namespace tare
