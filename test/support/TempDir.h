// A scratch folder for one test, removed at its end. In: nothing. Out: a path under the system's temporary folder. Used by unit, error and e2e tests.
#pragma once
#include "llvm/Support/Error.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tare::test {

class TempDir {
public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tare-test-XXXXXX").string();
    folder = ::mkdtemp(pattern.data()) ? pattern : "";
  }
  ~TempDir() {
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;

  std::string path(const std::string &name = "") const { return name.empty() ? folder : folder + "/" + name; }
  /// Writes `bytes` to a file of this folder (subfolders are made) and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
    return path(name);
  }

private:
  std::string folder;
};

inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// The message of an Expected that must have failed; "" when it did not (the caller's EXPECT then fails on the text).
template <typename T> std::string messageOf(llvm::Expected<T> value) { return value ? std::string() : llvm::toString(value.takeError()); }

} // namespace tare::test
