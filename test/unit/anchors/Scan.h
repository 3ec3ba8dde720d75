// Helpers of the anchor tests. In: a text, options. Out: its anchors as one comparable list, and the cases of a golden file. Holds: everything goes through
// the C API, so that the border is tested too.
#pragma once
#include "runtime/tare_anchors.h"
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace tare::test {

struct Found {
  std::string type, value;
  uint64_t byteBegin, byteEnd, charBegin, charEnd;
  auto operator<=>(const Found &) const = default;
};

inline Found foundOf(const tare_anchor &a) { return {tare_anchor_type_name(a.type), a.value, a.byte_begin, a.byte_end, a.char_begin, a.char_end}; }

struct Scan {
  std::vector<Found> anchors;
  tare_anchor_summary summary{};
};

/// The text in pieces of `piece` bytes (0: at once).
inline Scan scan(const std::string &text, size_t piece = 0, tare_anchor_options options = {sizeof(tare_anchor_options), 0, 0}) {
  Scan out;
  tare_error error{};
  auto take = [](void *user, const tare_anchor *a) { static_cast<Scan *>(user)->anchors.push_back(foundOf(*a)); };
  tare_anchor_scanner_t *scanner = tare_anchor_scanner_create(&options, take, &out, &error);
  for (size_t at = 0; at < text.size();) {
    const size_t size = piece ? std::min(piece, text.size() - at) : text.size();
    tare_anchor_scanner_feed(scanner, text.data() + at, size, &error);
    at += size;
  }
  tare_anchor_scanner_finish(scanner, &out.summary, &error);
  tare_anchor_scanner_destroy(scanner);
  return out;
}

/// "clause=4.2 annex=3": types and values in text order.
inline std::string brief(const std::string &text, tare_anchor_options options = {sizeof(tare_anchor_options), 0, 0}) {
  std::string out;
  for (auto &a : scan(text, 0, options).anchors) out += (out.empty() ? "" : " | ") + a.type + "=" + a.value;
  return out;
}

inline std::vector<nlohmann::json> casesOf(const std::string &path) {
  std::vector<nlohmann::json> cases;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) cases.push_back(nlohmann::json::parse(line));
  return cases;
}

} // namespace tare::test
