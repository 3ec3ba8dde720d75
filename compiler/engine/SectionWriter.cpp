// Streams sections into an AtomicFile. The first section starts at the second page: header and table, whose size is known only at the end, fit in the first.
#include "compiler/engine/SectionWriter.h"
#include "compiler/graph/Failure.h"
#include "runtime/tare.h"
#include "llvm/Support/Alignment.h"
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tare {
using format::SectionEntry;
using format::SectionKind;

static llvm::StringRef view(const void *data, size_t bytes) { return {static_cast<const char *>(data), bytes}; }

llvm::Expected<SectionWriter> SectionWriter::create(llvm::StringRef path) {
  auto file = AtomicFile::create(path);
  if (!file) return file.takeError();
  SectionWriter writer(std::move(*file));
  if (auto error = writer.file.write(std::string(format::kPage, '\0'))) return std::move(error);
  return std::move(writer);
}

llvm::Error SectionWriter::begin(SectionKind kind, uint32_t alignment) {
  if (sections.size() >= format::kMaxSections) return fail(ExitCode::Limit, "an engine has at most " + std::to_string(format::kMaxSections) + " sections");
  if (sections.empty()) alignment = std::max(alignment, format::kPage);
  if (auto error = file.write(std::string(llvm::offsetToAlignment(file.size(), llvm::Align(alignment)), '\0'))) return error;
  SectionEntry entry{};
  entry.kind = static_cast<uint32_t>(kind), entry.alignment = alignment, entry.offset = file.size();
  sections.push_back(entry);
  hash = llvm::SHA256();
  chunk.clear(), checksums.clear();
  return llvm::Error::success();
}

llvm::Error SectionWriter::append(llvm::StringRef bytes) {
  hash.update(bytes);
  if (sections.back().kind == static_cast<uint32_t>(SectionKind::Weights))
    for (llvm::StringRef rest = bytes; !rest.empty();) {
      llvm::StringRef part = rest.take_front(format::kChunk - chunk.size());
      chunk.append(part.data(), part.size());
      rest = rest.drop_front(part.size());
      if (chunk.size() < format::kChunk) break;
      uint64_t sum = XXH3_64bits(chunk.data(), chunk.size());
      checksums.append(view(&sum, 8));
      chunk.clear();
    }
  return file.write(bytes);
}

llvm::Error SectionWriter::align(uint32_t alignment) {
  return append(std::string(llvm::offsetToAlignment(sectionBytes(), llvm::Align(alignment)), '\0'));
}

llvm::Expected<uint32_t> SectionWriter::end() {
  SectionEntry &entry = sections.back();
  entry.bytes = file.size() - entry.offset;
  auto digest = hash.final();
  memcpy(entry.hash, digest.data(), sizeof entry.hash);
  auto index = static_cast<uint32_t>(sections.size() - 1);
  if (entry.kind != static_cast<uint32_t>(SectionKind::Weights)) return index;
  if (!chunk.empty()) {
    uint64_t sum = XXH3_64bits(chunk.data(), chunk.size());
    checksums.append(view(&sum, 8));
  }
  if (auto added = add(SectionKind::WeightChecksums, 64, std::string(checksums)); !added) return added.takeError();
  return index;
}

llvm::Expected<uint32_t> SectionWriter::add(SectionKind kind, uint32_t alignment, llvm::StringRef bytes) {
  if (auto error = begin(kind, alignment)) return std::move(error);
  if (auto error = append(bytes)) return std::move(error);
  return end();
}

/// The runtime's own loader is the judge of what was written; that no code is for this CPU is fine here.
static llvm::Error readBack(const std::string &path) {
  tare_options options{};
  options.struct_bytes = sizeof options;
  options.paranoid = 1;
  options.max_level = "cpu"; // no GPU's driver is asked
  tare_error error;
  tare_engine_t *engine = tare_engine_open(path.c_str(), &options, &error);
  tare_engine_close(engine);
  if (engine) return llvm::Error::success();
  return fail(error.code == TARE_REFUSED ? ExitCode::Internal : static_cast<ExitCode>(error.code), std::string("the written engine does not verify: ") + error.message)
      .withHint("nothing was put in place; a disk that returns other bytes than were written does this, else it is a bug of Tare");
}

llvm::Error SectionWriter::finish(const Signer &signer) {
  format::Header header{};
  memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.major = format::kMajor, header.minor = format::kMinor, header.endianness = format::kEndianness;
  header.headerBytes = sizeof header;
  auto digestOf = [&](bool withSignature) {
    header.sectionCount = static_cast<uint32_t>(sections.size()), header.fileBytes = file.size();
    llvm::SHA256 sum;
    sum.update(view(&header, offsetof(format::Header, hash)));
    for (SectionEntry entry : sections) {
      if (!withSignature && entry.kind == static_cast<uint32_t>(SectionKind::Signature)) memset(entry.hash, 0, sizeof entry.hash);
      sum.update(view(&entry, sizeof entry));
    }
    return sum.final();
  };
  if (signer) {
    if (auto added = add(SectionKind::Signature, 64, std::string(format::kSignatureBytes, '\0')); !added) return added.takeError();
    auto digest = digestOf(false);
    std::string signature = signer(std::string(format::kSignaturePrefix) + view(digest.data(), digest.size()).str());
    if (signature.size() != format::kSignatureBytes) return fail(ExitCode::Internal, "signing failed");
    SectionEntry &entry = sections.back();
    if (auto error = file.writeAt(entry.offset, signature)) return error;
    llvm::SHA256 sum;
    sum.update(signature);
    auto own = sum.final();
    memcpy(entry.hash, own.data(), sizeof entry.hash);
  }
  auto digest = digestOf(true);
  memcpy(header.hash, digest.data(), sizeof header.hash);
  if (auto error = file.writeAt(0, view(&header, sizeof header))) return error;
  if (auto error = file.writeAt(sizeof header, view(sections.data(), sections.size() * sizeof(SectionEntry)))) return error;
  return file.commit(readBack);
}

} // namespace tare
