// Object file to flat code section. In: one relocatable x86-64 object; out: CodeSection::bytes, elf, textBytes. Must hold: only PC-relative relocations,
// no writable data, no undefined symbol; anything else is refused by name before the linker runs, because a flat link would hide it.
#pragma once
#include "compiler/codegen/cpu/Backend.h"

namespace tare {

/// `object` as emitted by the back end, function sections on; `level` only names it in messages.
llvm::Expected<CodeSection> linkFlat(llvm::StringRef object, llvm::StringRef level);

} // namespace tare
