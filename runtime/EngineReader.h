// Reads an engine file. In: a path, or bytes in memory. Out: an EngineFile: the mapping and its sections, of which every byte was compared with a hash
// or found to be zero padding. Must hold: nothing is used before it was checked; whole-file verification is the only mode (docs/engine-format.md).
#pragma once
#include "runtime/Memory.h"
#include "runtime/format.h"
#include "runtime/result.h"
#include <cstring>
#include <vector>

namespace tare {

/// A read-only or executable mapping of a file, or a copy in anonymous memory.
class Mapping {
public:
  Mapping() = default;
  Mapping(void *address, size_t bytes) : address(address), size(bytes) {}
  Mapping(Mapping &&other) noexcept : address(std::exchange(other.address, nullptr)), size(std::exchange(other.size, 0)) {}
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();
  const uint8_t *data() const { return static_cast<const uint8_t *>(address); }
  size_t bytes() const { return size; }

private:
  void *address = nullptr;
  size_t size = 0;
};

struct Section {
  format::SectionKind kind;
  uint64_t offset, bytes;
  const uint8_t *data;
  const uint8_t *hash; ///< SHA-256 as the table has it
};

class EngineFile {
public:
  /// Maps and verifies: header, table, padding, SHA-256 of everything but the weights, XXH3 of the weights. `paranoid`: SHA-256 of the weights too.
  static Result<EngineFile> open(const char *path, bool paranoid);
  /// The same for bytes that the caller keeps alive and unchanged; they are copied when not aligned to 64 bytes.
  static Result<EngineFile> fromMemory(const void *data, size_t bytes, bool paranoid);

  const format::Header &header() const { return *reinterpret_cast<const format::Header *>(base); }
  uint64_t bytes() const { return size; }
  const std::vector<Section> &sections() const { return list; }
  /// The `number`-th section of a kind; null when there is none.
  const Section *find(format::SectionKind kind, size_t number = 0) const;
  /// SHA-256 of the weights against the table.
  Result<void> verifyWeights() const;
  /// SHA-256 of the first half of the header and the section table without the signature's own hash: what a signature signs.
  void digest(uint8_t out[32]) const;
  /// A code section, readable and executable but not writable, verified once more through that mapping.
  Result<Mapping> mapCode(const Section &code) const;

  EngineFile(EngineFile &&) noexcept;
  ~EngineFile();

private:
  EngineFile() = default;
  Result<void> verify(bool paranoid);
  Result<void> checkSections();

  const uint8_t *base = nullptr;
  uint64_t size = 0;
  int file = -1; // kept open for mapCode; -1 for memory
  Mapping mapping;
  Block copy;
  std::vector<Section> list;
};

/// Header and table of the first `available` bytes of a file of `fileBytes`, checked by themselves: magic, version, endianness, sizes, hash, order,
/// alignment, overlap. What `inspect --header` shows. `entries` points into `data`.
Result<const format::SectionEntry *> checkHeader(const uint8_t *data, uint64_t available, uint64_t fileBytes);

} // namespace tare
