// Mapping, header and hashes of an engine file. The order of the checks is the order in which a byte may be trusted: size, magic, endianness, version,
// lengths, hash of header and table, table entries, padding, sections.
#include "runtime/EngineReader.h"
#include "runtime/Checksum.h"
#include "runtime/Sha256.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tare {
using format::Header;
using format::SectionEntry;
using format::SectionKind;

namespace {
/// What a file that is no engine looks like, for the message.
const char *otherFormat(const uint8_t *d, uint64_t bytes) {
  if (bytes >= 4 && memcmp(d, "PK\3\4", 4) == 0) return "it is a zip archive (.npz, .pt, .zip)";
  if (bytes >= 4 && memcmp(d, "GGUF", 4) == 0) return "it is a GGUF file";
  if (bytes >= 4 && memcmp(d, "\x7f" "ELF", 4) == 0) return "it is an ELF file";
  if (bytes >= 2 && d[0] == 0x1f && d[1] == 0x8b) return "it is gzip data";
  if (bytes >= 9 && d[8] == '{') return "it is a safetensors file";
  if (bytes >= 2 && d[0] == 0x08 && d[1] >= 1 && d[1] <= 32) return "it looks like an ONNX model: make an engine of it with `tare compile`";
  return "make one with `tare compile`";
}

Error atEntry(const SectionEntry &entry, uint32_t index, const char *text) {
  return Error::format(Status::Refused, text, "section %u (%s), offset %llu, %llu bytes, alignment %u", index, format::kindName(entry.kind),
                       static_cast<unsigned long long>(entry.offset), static_cast<unsigned long long>(entry.bytes), entry.alignment)
      .atOffset(sizeof(Header) + uint64_t(index) * sizeof(SectionEntry));
}

void tableDigest(const uint8_t *base, uint32_t count, bool withSignature, uint8_t out[32]) {
  Sha256 hash;
  hash.update(base, offsetof(Header, hash));
  auto *entries = reinterpret_cast<const SectionEntry *>(base + sizeof(Header));
  for (uint32_t i = 0; i < count; ++i) {
    SectionEntry entry = entries[i];
    if (!withSignature && entry.kind == static_cast<uint32_t>(SectionKind::Signature)) memset(entry.hash, 0, sizeof entry.hash);
    hash.update(&entry, sizeof entry);
  }
  hash.finish(out);
}

Error systemError(const char *text, const char *path) {
  int code = errno;
  Status status = code == ENOMEM ? Status::Limit : Status::Io;
  return Error::format(status, text, "%s: %s", path, strerror(code));
}
} // namespace

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(address, other.address);
  std::swap(size, other.size);
  return *this;
}
Mapping::~Mapping() {
  if (address) munmap(address, size);
}

Result<const SectionEntry *> checkHeader(const uint8_t *data, uint64_t available, uint64_t fileBytes) {
  auto *header = reinterpret_cast<const Header *>(data);
  if (available < sizeof(format::kMagic) || memcmp(data, format::kMagic, sizeof(format::kMagic)) != 0)
    return Error(Error::format(Status::Refused, "not a Tare engine", "%s", otherFormat(data, available)).atOffset(0));
  if (available < sizeof(Header))
    return Error::format(Status::Refused, "engine is cut off", "%llu bytes, the header alone has %zu", static_cast<unsigned long long>(fileBytes), sizeof(Header));
  if (header->endianness != format::kEndianness)
    return Error(Error::format(Status::Refused, "engine was made for another byte order", "mark %08x, expected %08x; compile again on this kind of machine",
                               header->endianness, format::kEndianness)
                     .atOffset(offsetof(Header, endianness)));
  if (header->major != format::kMajor || header->minor > format::kMinor)
    return Error(Error::format(Status::Refused, "engine format is not readable by this runtime",
                               "the file has v%u.%u, this runtime reads v%u.0 to v%u.%u; %s", header->major, header->minor, format::kMajor,
                               format::kMajor, format::kMinor,
                               header->major < format::kMajor ? "compile the model again" : "update the runtime or compile with an older tare")
                     .atOffset(offsetof(Header, major)));
  uint32_t count = header->sectionCount;
  if (header->headerBytes != sizeof(Header) || count == 0 || count > format::kMaxSections)
    return Error::format(Status::Refused, "engine header is wrong", "header of %u bytes, %u sections (at most %u)", header->headerBytes, count, format::kMaxSections);
  uint64_t tableEnd = sizeof(Header) + uint64_t(count) * sizeof(SectionEntry);
  if (available < tableEnd)
    return Error::format(Status::Refused, "engine is cut off", "%llu bytes, the section table ends at %llu", static_cast<unsigned long long>(fileBytes),
                         static_cast<unsigned long long>(tableEnd));
  uint8_t hash[32];
  tableDigest(data, count, true, hash);
  if (memcmp(hash, header->hash, 32) != 0)
    return Error(Error::format(Status::Refused, "hash mismatch", "the header or section table was changed").atOffset(offsetof(Header, hash)));

  auto *entries = reinterpret_cast<const SectionEntry *>(data + sizeof(Header));
  uint64_t end = tableEnd;
  for (uint32_t i = 0; i < count; ++i) {
    const SectionEntry &entry = entries[i];
    uint64_t sectionEnd;
    if (entry.kind == 0 || entry.kind > format::kLastKind) return atEntry(entry, i, "unknown section kind");
    if (entry.alignment < 8 || entry.alignment > format::kMaxAlignment || (entry.alignment & (entry.alignment - 1)) != 0 ||
        entry.offset % entry.alignment != 0)
      return atEntry(entry, i, "section alignment is wrong");
    if (__builtin_add_overflow(entry.offset, entry.bytes, &sectionEnd) || sectionEnd > header->fileBytes)
      return atEntry(entry, i, "section lies outside of the file");
    if (entry.offset < end) return atEntry(entry, i, i == 0 ? "section overlaps the header" : "section overlaps the one before it");
    if (entry.offset - end >= entry.alignment) return atEntry(entry, i, "unreferenced bytes before section");
    if (entry.reserved != 0) return atEntry(entry, i, "reserved field is not zero");
    end = sectionEnd;
  }
  if (end != header->fileBytes)
    return Error::format(Status::Refused, "engine header is wrong", "sections end at %llu, the file at %llu", static_cast<unsigned long long>(end),
                         static_cast<unsigned long long>(header->fileBytes));
  if (fileBytes > end)
    return Error(Error::format(Status::Refused, "trailing bytes after the engine", "%llu bytes, the last section ends at %llu",
                               static_cast<unsigned long long>(fileBytes), static_cast<unsigned long long>(end))
                     .atOffset(end));
  for (uint32_t i = 0; i < count; ++i)
    if (fileBytes < entries[i].offset + entries[i].bytes)
      return Error(Error::format(Status::Refused, "engine is cut off", "%llu of %llu bytes; section %u (%s) is at [%llu, %llu)",
                                 static_cast<unsigned long long>(fileBytes), static_cast<unsigned long long>(header->fileBytes), i,
                                 format::kindName(entries[i].kind), static_cast<unsigned long long>(entries[i].offset),
                                 static_cast<unsigned long long>(entries[i].offset + entries[i].bytes))
                       .atOffset(fileBytes));
  return entries;
}

EngineFile::EngineFile(EngineFile &&o) noexcept
    : base(o.base), size(o.size), file(std::exchange(o.file, -1)), mapping(std::move(o.mapping)), copy(std::move(o.copy)), list(std::move(o.list)) {}

EngineFile::~EngineFile() {
  if (file >= 0) close(file);
}

Result<EngineFile> EngineFile::open(const char *path, bool paranoid) {
  EngineFile engine;
  engine.file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); // O_NONBLOCK: a FIFO must not hang
  if (engine.file < 0) return systemError("cannot open engine", path);
  struct stat info;
  if (fstat(engine.file, &info) != 0) return systemError("cannot read engine", path);
  if (!S_ISREG(info.st_mode)) return Error::format(Status::Refused, "not a regular file", "%s", path);
  engine.size = static_cast<uint64_t>(info.st_size);
  if (engine.size == 0) return Error::format(Status::Refused, "not a Tare engine", "%s is empty", path);
  void *address = mmap(nullptr, engine.size, PROT_READ, MAP_PRIVATE, engine.file, 0);
  if (address == MAP_FAILED) return systemError("cannot map engine", path);
  engine.mapping = Mapping(address, engine.size);
  engine.base = engine.mapping.data();
  TARE_TRY(engine.verify(paranoid));
  return engine;
}

Result<EngineFile> EngineFile::fromMemory(const void *data, size_t bytes, bool paranoid) {
  EngineFile engine;
  engine.base = static_cast<const uint8_t *>(data), engine.size = bytes;
  if (reinterpret_cast<uintptr_t>(data) % 64 != 0) {
    TARE_TRY(engine.copy.reserve(bytes, "a copy of the engine"));
    memcpy(engine.copy.data(), data, bytes);
    engine.base = static_cast<const uint8_t *>(engine.copy.data());
  }
  TARE_TRY(engine.verify(paranoid));
  return engine;
}

Result<void> EngineFile::verify(bool paranoid) {
  auto entries = checkHeader(base, size, size);
  if (!entries) return std::move(entries.error());
  uint64_t end = sizeof(Header) + header().sectionCount * sizeof(SectionEntry);
  for (uint32_t i = 0; i < header().sectionCount; ++i) {
    const SectionEntry &entry = (*entries)[i];
    for (; end < entry.offset; ++end)
      if (base[end] != 0) return Error(Error::format(Status::Refused, "padding is not zero", "before section %u (%s)", i, format::kindName(entry.kind)).atOffset(end));
    list.push_back({static_cast<SectionKind>(entry.kind), entry.offset, entry.bytes, base + entry.offset, entry.hash});
    end = entry.offset + entry.bytes;
  }
  TARE_TRY(checkSections());
  for (const Section &section : list) {
    uint8_t hash[32];
    if (section.kind == SectionKind::Weights) continue;
    Sha256::of(section.data, section.bytes, hash);
    if (memcmp(hash, section.hash, 32) != 0)
      return Error(Error::format(Status::Refused, "hash mismatch", "section %s was changed", format::kindName(static_cast<uint32_t>(section.kind))).atOffset(section.offset));
  }
  if (const Section *weights = find(SectionKind::Weights)) {
    auto wrong = firstWrongChunk(weights->data, weights->bytes, find(SectionKind::WeightChecksums)->data);
    if (wrong >= 0)
      return Error(Error::format(Status::Refused, "hash mismatch", "section weights was changed in its chunk %lld of 1 MiB", static_cast<long long>(wrong))
                       .atOffset(weights->offset + static_cast<uint64_t>(wrong) * format::kChunk));
    if (paranoid) TARE_TRY(verifyWeights());
  }
  return {};
}

/// Which kinds there must be, and how often; sizes that follow from other sizes.
Result<void> EngineFile::checkSections() {
  size_t counts[format::kLastKind + 1] = {0};
  for (const Section &section : list) {
    auto kind = static_cast<uint32_t>(section.kind);
    if (++counts[kind] > 1 && section.kind != SectionKind::Code && section.kind != SectionKind::CudaModule)
      return Error::format(Status::Refused, "engine has a section twice", "%s", format::kindName(kind));
    if ((section.kind == SectionKind::Code || section.kind == SectionKind::Weights) && section.offset % format::kPage != 0)
      return Error(Error::format(Status::Refused, "section alignment is wrong", "%s must start at a page", format::kindName(kind)).atOffset(section.offset));
  }
  if (counts[1] != 1) return Error(Status::Refused, "engine has no plan");
  if (counts[4] == 0 && counts[static_cast<size_t>(SectionKind::CudaModule)] == 0) return Error(Status::Refused, "engine has no code");
  if (counts[2] != counts[3]) return Error(Status::Refused, "engine has weights without checksums, or checksums without weights");
  if (find(SectionKind::Plan)->bytes > format::kMaxPlanBytes) return Error(Status::Limit, "plan is larger than 256 MiB");
  if (const Section *weights = find(SectionKind::Weights)) {
    uint64_t chunks = weights->bytes / format::kChunk + (weights->bytes % format::kChunk != 0);
    if (find(SectionKind::WeightChecksums)->bytes != chunks * 8) return Error(Status::Refused, "weight checksums do not match the weights' size");
  }
  const Section *signature = find(SectionKind::Signature);
  if (signature && signature->bytes != format::kSignatureBytes) return Error(Status::Refused, "signature has a wrong size");
  return {};
}

const Section *EngineFile::find(SectionKind kind, size_t number) const {
  for (const Section &section : list)
    if (section.kind == kind && number-- == 0) return &section;
  return nullptr;
}

Result<void> EngineFile::verifyWeights() const {
  const Section *weights = find(SectionKind::Weights);
  if (!weights) return {};
  uint8_t hash[32];
  Sha256::of(weights->data, weights->bytes, hash);
  if (memcmp(hash, weights->hash, 32) == 0) return {};
  return Error(Error::format(Status::Refused, "hash mismatch", "section weights was changed (SHA-256)").atOffset(weights->offset));
}

void EngineFile::digest(uint8_t out[32]) const { tableDigest(base, header().sectionCount, false, out); }

Result<Mapping> EngineFile::mapCode(const Section &code) const {
  size_t length = static_cast<size_t>(code.bytes);
  void *address = MAP_FAILED;
  if (file >= 0) address = mmap(nullptr, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, static_cast<off_t>(code.offset));
  if (address == MAP_FAILED) { // bytes in memory, or a file system mounted noexec: a copy that is made executable once it is no longer writable
    address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return Error::format(Status::Limit, "out of memory", "%zu bytes for a copy of the code", length);
    memcpy(address, code.data, length);
    if (mprotect(address, length, PROT_READ | PROT_EXEC) != 0) {
      Error error = Error::format(Status::Environment, "the system refuses executable memory", "%s", strerror(errno));
      munmap(address, length);
      return error;
    }
  }
  Mapping mapped(address, length);
  uint8_t hash[32];
  Sha256::of(mapped.data(), length, hash);
  if (memcmp(hash, code.hash, 32) != 0) return Error(Status::Refused, "engine changed while it was loaded");
  return mapped;
}

} // namespace tare
