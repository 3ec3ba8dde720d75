// See Record.h for the format. The file's own view of device memory is kept, so that weights are written once.
#include "Record.h"
#include <unistd.h>

namespace tare::fakecuda {
namespace {
constexpr size_t kPiece = 4096;

struct Recorder {
  FILE *file = nullptr;
  std::map<uint64_t, std::string> written; // by address: what a reader of the file has
  std::map<std::string, uint64_t> modules; // by image: an unloaded module's address may come again

  Recorder() {
    if (const char *folder = getenv("FAKE_CUDA_RECORD")) file = fopen((std::string(folder) + "/" + std::to_string(getpid()) + ".launches").c_str(), "wb");
  }
  ~Recorder() {
    if (file) fclose(file);
  }
  void bytes(const void *from, size_t count) {
    if (fwrite(from, 1, count, file) != count) world().wrong("FAKE_CUDA_RECORD: the file cannot be written");
  }
  void number(uint64_t v) { bytes(&v, 8); }
  void text(const std::string &s) { number(s.size()), bytes(s.data(), s.size()); }

  /// All pieces of device memory that the reader has not.
  void writes() {
    std::vector<std::pair<uint64_t, std::string>> pieces;
    for (auto &[address, size] : world().memory) {
      const char *now = reinterpret_cast<const char *>(address & ~kTag);
      std::string &known = written[address];
      known.resize(size);
      for (size_t at = 0; at < size; at += kPiece) {
        size_t count = std::min(kPiece, size - at);
        if (memcmp(now + at, known.data() + at, count) == 0) continue;
        memcpy(known.data() + at, now + at, count);
        pieces.emplace_back(address + at, std::string(now + at, count));
      }
    }
    number(pieces.size());
    for (auto &[address, data] : pieces) number(address), text(data);
  }
  /// A reader forgets what is gone, and so must this side: the address may come again with another size.
  void allocations() {
    auto &memory = world().memory;
    for (auto each = written.begin(); each != written.end();) {
      auto found = memory.find(each->first);
      each = found == memory.end() || found->second != each->second.size() ? written.erase(each) : std::next(each);
    }
    number(memory.size());
    for (auto &[address, size] : memory) number(address), number(size);
  }
  void launch(const FakeKernel &k) {
    auto [module, isNew] = modules.emplace(k.function->module->image, modules.size());
    if (isNew) bytes("M", 1), number(module->second), text(module->first);
    bytes("L", 1), number(module->second), text(k.function->name);
    bytes(k.grid, sizeof k.grid), bytes(k.block, sizeof k.block), bytes(&k.shared, sizeof k.shared);
    number(k.parameters.size());
    for (auto &p : k.parameters) text(p);
    allocations(), writes();
  }
};
Recorder &recorder() {
  static Recorder r;
  return r;
}
} // namespace

void recordLaunch(const FakeKernel &kernel) {
  if (recorder().file) recorder().launch(kernel);
}
void recordEnd() {
  if (recorder().file) recorder().bytes("E", 1), recorder().writes();
}

} // namespace tare::fakecuda
