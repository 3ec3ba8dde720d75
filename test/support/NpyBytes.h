// .npy bytes written out by hand, right and wrong ones. In: the text of the header's dictionary, the data, the version of the format. Out: the file's bytes.
// Must hold: nothing is checked or corrected here.
#pragma once
#include <string>

namespace tare::test {

inline std::string npy(const std::string &dict, const std::string &data, int version = 1) {
  std::string header = dict + "\n", out("\x93NUMPY", 6);
  out += char(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += char((header.size() >> (8 * i)) & 0xff);
  return out + header + data;
}

} // namespace tare::test
