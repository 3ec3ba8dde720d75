// SHA-256 (FIPS 180-4). In: bytes in any number of pieces. Out: 32 bytes. Uses the SHA instructions where the CPU has them; both paths are tested
// against the standard's vectors.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tare {

class Sha256 {
public:
  explicit Sha256(bool allowInstructions = true);
  void update(const void *data, size_t bytes);
  void finish(uint8_t digest[32]);
  static void of(const void *data, size_t bytes, uint8_t digest[32]);

private:
  void blocks(const uint8_t *data, size_t count);
  uint32_t state[8];
  uint64_t total = 0;
  size_t held = 0;
  uint8_t block[64];
  bool instructions;
};

} // namespace tare
