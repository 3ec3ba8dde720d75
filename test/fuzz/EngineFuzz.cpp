// libFuzzer target: bytes as an engine file. In: any bytes; where header and table have the right form, all hashes are made right first, as an attacker would, so that the
// bytes reach the plan's verifier. Must hold: refused, or estimates and shapes can be asked for. No code is mapped (level "none"), so none runs.
#include "runtime/Checksum.h"
#include "runtime/Sha256.h"
#include "runtime/format.h"
#include "runtime/tare.h"
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace tare;

static void makeHashesRight(std::vector<uint8_t> &bytes) {
  if (bytes.size() < sizeof(format::Header)) return;
  format::Header header;
  memcpy(&header, bytes.data(), sizeof header);
  if (header.sectionCount == 0 || header.sectionCount > format::kMaxSections || sizeof header + header.sectionCount * sizeof(format::SectionEntry) > bytes.size()) return;
  memcpy(header.magic, format::kMagic, sizeof header.magic);
  std::vector<format::SectionEntry> table(header.sectionCount);
  memcpy(table.data(), bytes.data() + sizeof header, table.size() * sizeof table[0]);
  auto inside = [&](const format::SectionEntry &e) { return e.offset <= bytes.size() && e.bytes <= bytes.size() - e.offset; };
  for (auto &sums : table)
    for (auto &weights : table)
      if (sums.kind == 3 && weights.kind == 2 && inside(sums) && inside(weights))
        for (uint64_t i = 0; i * format::kChunk < weights.bytes && (i + 1) * 8 <= sums.bytes; ++i) {
          uint64_t sum = XXH3_64bits(bytes.data() + weights.offset + i * format::kChunk, std::min<uint64_t>(format::kChunk, weights.bytes - i * format::kChunk));
          memcpy(bytes.data() + sums.offset + i * 8, &sum, 8);
        }
  for (auto &entry : table)
    if (inside(entry)) Sha256::of(bytes.data() + entry.offset, entry.bytes, entry.hash);
  header.fileBytes = bytes.size();
  memcpy(bytes.data(), &header, sizeof header);
  memcpy(bytes.data() + sizeof header, table.data(), table.size() * sizeof table[0]);
  Sha256 hash;
  hash.update(bytes.data(), offsetof(format::Header, hash));
  hash.update(table.data(), table.size() * sizeof table[0]);
  hash.finish(bytes.data() + offsetof(format::Header, hash));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0; // no memory at all is a wrong call, not a bad file
  std::vector<uint8_t> bytes(data, data + size);
  makeHashesRight(bytes);
  tare_options options{};
  options.struct_bytes = sizeof options, options.max_level = "none";
  tare_error error{};
  tare_engine_t *engine = tare_engine_open_memory(bytes.data(), bytes.size(), &options, &error);
  if (!engine) {
    if (error.code != TARE_REFUSED && error.code != TARE_LIMIT) std::abort();
    return 0;
  }
  std::vector<const char *> names;
  std::vector<tare_tensor> shapes;
  static const int64_t sizes[8] = {1, 7, 2, 3, 1, 1, 1, 1};
  for (size_t i = 0; i < tare_engine_input_count(engine); ++i) {
    tare_tensor_info info;
    if (tare_engine_input_info(engine, i, &info, &error) != TARE_OK) std::abort();
    names.push_back(info.name);
    shapes.push_back({info.dtype, info.rank, sizes, nullptr, 0});
  }
  for (size_t i = 0; i < tare_engine_output_count(engine); ++i) {
    tare_tensor_info info;
    if (tare_engine_output_info(engine, i, &info, &error) != TARE_OK) std::abort();
  }
  tare_estimate estimate;
  (void)tare_engine_estimate(engine, names.data(), shapes.data(), names.size(), &estimate, &error);
  (void)tare_engine_estimate(engine, nullptr, nullptr, 0, &estimate, &error);
  (void)tare_engine_verify(engine, &error);
  tare_engine_close(engine);
  return 0;
}
