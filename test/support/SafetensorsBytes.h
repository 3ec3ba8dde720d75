// Writes safetensors files for tests from header text, so that broken ones can be made. In: JSON text and data. Out: bytes.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace tare::test {
inline std::string safetensors(const std::string &header, const std::string &data = "", uint64_t claimed = 0) {
  uint64_t length = claimed ? claimed : header.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + header + data;
}
/// `"name":{"dtype":"F32","shape":[...],"data_offsets":[a,b]}`
inline std::string entry(const std::string &name, const std::string &dtype, const std::string &shape, uint64_t begin, uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}
/// A whole file out of tensors: name -> {dtype word, shape text, bytes}.
struct TensorText {
  std::string dtype, shape, bytes;
};
inline std::string safetensorsOf(const std::map<std::string, TensorText> &tensors) {
  std::string header = "{", data;
  for (const auto &[name, t] : tensors) {
    header += (data.empty() && header.size() == 1 ? "" : ",") + entry(name, t.dtype, t.shape, data.size(), data.size() + t.bytes.size());
    data += t.bytes;
  }
  return safetensors(header + "}", data);
}
} // namespace tare::test
