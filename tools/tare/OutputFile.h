// Files that a command writes beside the engine: reports, configuration, depfile, MLIR text. In: a path and all its bytes. Out: the file replaced at
// once, or an error with exit 6 and the old file untouched. Holds: temp in the same folder, fsync, rename, fsync of the folder.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tare::cli {

llvm::Error writeFile(const std::string &path, llvm::StringRef bytes);
/// Before long work: the folder exists (exit 2) and is writable, the path is no folder (exit 6), and it is none of `inputs` (exit 2). `flag` names it in errors.
llvm::Error checkWritable(llvm::StringRef flag, const std::string &path, const std::vector<std::string> &inputs);
/// The first bytes of a regular file, at most `limit`, and the file's size.
llvm::Expected<std::pair<std::string, uint64_t>> readPrefix(const std::string &path, size_t limit);
/// Whole regular file, at most `limit` bytes (exit 7 above); exit 6 when it cannot be read, exit 3 when it is no regular file.
llvm::Expected<std::string> readFile(const std::string &path, uint64_t limit = uint64_t(1) << 30);

} // namespace tare::cli
