// The engine file's fixed parts, byte for byte (docs/engine-format.md draws them): header, section table, limits. Writer and reader share this file.
// All numbers are little-endian; a reader accepts its own major version and minor versions up to its own.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tare::format {

inline constexpr char kMagic[8] = {'\x89', 'T', 'A', 'R', 'E', '\r', '\n', '\x1a'};
inline constexpr uint16_t kMajor = 1, kMinor = 2;
inline constexpr uint32_t kEndianness = 0x01020304;

struct Header { // 64 bytes at offset 0
  char magic[8];
  uint16_t major, minor;
  uint32_t endianness;   // kEndianness as the writer's machine stores it
  uint32_t headerBytes;  // 64
  uint32_t sectionCount; // entries of the table, which follows at once
  uint64_t fileBytes;    // of the whole file
  uint8_t hash[32];      // SHA-256 of the 32 bytes before this field and of the section table
};
static_assert(sizeof(Header) == 64);

enum class SectionKind : uint32_t {
  Plan = 1,            // FlatBuffers, runtime/engine.fbs
  Weights = 2,         // packed constants, mapped and never copied
  WeightChecksums = 3, // XXH3-64 of each 1 MiB chunk of the weights
  Code = 4,            // one flat position-independent section per ISA level; entry at its first byte
  Certificate = 5,     // JSON: evidence of every removal
  Configuration = 6,   // YAML: pruned, rejected and frozen layers
  Report = 7,          // JSON report
  Provenance = 8,      // JSON: tool version, source hash, options
  Signature = 9,       // Ed25519: 32 bytes public key, 64 bytes signature
  CudaSource = 10,     // the .cu text of every kernel (format 1.1), for people; nothing runs it
  CudaModule = 11,     // images of all CUDA kernels for one architecture (format 1.2), each at a multiple of 64; Plan.cuda says where
};
inline constexpr uint32_t kLastKind = 11;
inline const char *kindName(uint32_t kind) {
  constexpr const char *names[] = {"?",      "plan",       "weights",   "weight checksums", "code",       "certificate", "configuration",
                                   "report", "provenance", "signature", "cuda source",      "cuda module"};
  return kind <= kLastKind ? names[kind] : "?";
}

struct SectionEntry { // 64 bytes, at 64 + 64 * index; sorted by offset
  uint32_t kind;
  uint32_t alignment; // of `offset`: a power of two from 8 to 65536
  uint64_t offset, bytes;
  uint64_t reserved; // 0
  uint8_t hash[32];  // SHA-256 of the section's bytes
};
static_assert(sizeof(SectionEntry) == 64);

inline constexpr size_t kChunk = size_t(1) << 20; // of the weight checksums
inline constexpr uint32_t kPage = 4096;           // alignment of code and weights

/// What a file may hold at most. Everything is checked before it is used (runtime/Validate).
inline constexpr uint32_t kMaxSections = 62 /* header and table fit in a page */, kMaxAlignment = 65536;
inline constexpr uint32_t kMaxName = 4096, kMaxRank = 8, kMaxSymbols = 4096, kMaxTensors = 65536;
inline constexpr uint32_t kMaxItems = 1u << 20;                   // dims, buffers, steps, each
inline constexpr uint32_t kMaxProgram = 8192, kMaxStack = 64;     // of one dim program, in words and values
inline constexpr uint32_t kMaxThreads = 1024, kMaxSharedBytes = 227 << 10; // of a block of a CUDA kernel
inline constexpr uint32_t kMaxArgumentBytes = 4096, kCheckArgumentBytes = 40, kAnchorsArgumentBytes = 56; // of a CUDA launch; all others are 8
inline constexpr uint64_t kMaxPlanBytes = uint64_t(256) << 20;
inline constexpr size_t kSignatureBytes = 96, kDigestBytes = 32;
inline constexpr char kSignaturePrefix[] = "tare engine signature v1"; // the signed message: these 24 bytes, then the digest

} // namespace tare::format
