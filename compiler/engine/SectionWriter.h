// The engine file, section by section (docs/engine-format.md). In: sections in any order, streamed. Out: header, table, padding and hashes around them,
// written atomically and verified by reading back. Must hold: the bytes depend on the sections alone; memory stays at one piece of a section.
#pragma once
#include "compiler/engine/AtomicFile.h"
#include "runtime/format.h"
#include "llvm/Support/SHA256.h"
#include <functional>
#include <optional>
#include <vector>

namespace tare {

/// Signs a message: 32 bytes of public key, then 64 bytes of Ed25519 signature.
using Signer = std::function<std::string(llvm::StringRef message)>;

class SectionWriter {
public:
  static llvm::Expected<SectionWriter> create(llvm::StringRef path);
  /// Starts a section at a multiple of `alignment`; append() adds to it; end() returns its index in the table. Ending the weights adds their checksums.
  llvm::Error begin(format::SectionKind kind, uint32_t alignment);
  llvm::Error append(llvm::StringRef bytes);
  llvm::Error align(uint32_t alignment); ///< zeros inside the section
  llvm::Expected<uint32_t> end();
  uint64_t sectionBytes() const { return file.size() - sections.back().offset; }
  llvm::Expected<uint32_t> add(format::SectionKind kind, uint32_t alignment, llvm::StringRef bytes);
  /// Writes header and table, reads all back with the runtime's own loader, and puts the file in place.
  llvm::Error finish(const Signer &signer = {});

private:
  explicit SectionWriter(AtomicFile file) : file(std::move(file)) {}
  AtomicFile file;
  std::vector<format::SectionEntry> sections;
  llvm::SHA256 hash;
  std::string chunk, checksums; // of the weights
};

} // namespace tare
