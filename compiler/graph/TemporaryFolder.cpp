// LLVM's unique folders and streams behind TemporaryFolder.h. In: names and bytes. Out: files. Holds: an error of the
// stream is taken from it before it goes, because an untaken one ends the process.
#include "compiler/graph/TemporaryFolder.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace tare {

llvm::Expected<TemporaryFolder> TemporaryFolder::create(const char *what) {
  llvm::SmallString<128> made;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory(temporaryName(what), made))
    return fail(ExitCode::Io, "cannot make a temporary folder: " + error.message())
        .withHint("set TMPDIR to a folder that can be written");
  TemporaryFolder result;
  result.folder = made.str().str();
  return result;
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty()) llvm::sys::fs::remove_directories(folder);
}

llvm::Expected<std::string> TemporaryFolder::write(llvm::StringRef name, llvm::StringRef bytes) const {
  std::string file = path(name);
  std::error_code error;
  llvm::raw_fd_ostream out(file, error);
  if (!error) {
    out << bytes;
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (error) return fail(ExitCode::Io, "cannot write: " + error.message()).inFile(file);
  return file;
}

} // namespace tare
