// The report as SARIF 2.1.0 for code-scanning views. In: a Report. Out: one result per candidate (rejected: warning, frozen: warning, pruned: note), rules by
// code. Holds: valid against the SARIF 2.1.0 schema; the artifact is named by its file name only, never by a path of this machine.
#include "compiler/report/Writers.h"
#include "llvm/ADT/StringExtras.h"
#include <nlohmann/json.hpp>
#include <set>

namespace tare::report {
using Json = nlohmann::ordered_json;

/// A file name as a relative URI reference: everything but unreserved characters percent-encoded.
static std::string uri(const std::string &name) {
  static const char digits[] = "0123456789ABCDEF";
  std::string result;
  for (char c : name) {
    if (llvm::isAlnum(c) || llvm::StringRef("-._~").contains(c)) result += c;
    else (result += '%', result += digits[static_cast<unsigned char>(c) >> 4], result += digits[c & 15]);
  }
  return result;
}

std::string toSarif(const Report &r) {
  Json results = Json::array(), rules = Json::array();
  std::set<std::string> codes;
  for (auto &c : r.candidates) {
    std::string code = c.verdict == "pruned" ? "PRUNED" : c.code.empty() ? "REJECTED" : c.code;
    codes.insert(code);
    std::string message = !c.line.empty() ? c.line : c.name + ": " + c.verdict + (c.basis.empty() ? "" : " (" + c.basis + ")");
    results.push_back({{"ruleId", code},
                       {"level", c.verdict == "pruned" ? "note" : "warning"},
                       {"kind", c.verdict == "pruned" ? "pass" : "fail"},
                       {"message", {{"text", message}}},
                       {"locations", {{{"physicalLocation", {{"artifactLocation", {{"uri", uri(r.modelName)}}}}},
                                       {"logicalLocations", {{{"fullyQualifiedName", c.name}, {"kind", "module"}}}}}}}});
    // SARIF: a level other than none goes with kind fail only.
    if (c.verdict == "pruned") results.back()["level"] = "none";
  }
  for (auto &code : codes)
    rules.push_back({{"id", code}, {"shortDescription", {{"text", code == "PRUNED" ? "The layer weighs nothing and was removed" : "The layer was kept: " + code}}}});
  Json sarif = {{"version", "2.1.0"}, {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}};
  sarif["runs"] = Json::array({{{"tool", {{"driver", {{"name", "tare"}, {"version", r.version}, {"rules", rules}}}}},
                                {"artifacts", {{{"location", {{"uri", uri(r.modelName)}}}, {"hashes", {{"sha-256", r.modelSha256}}}}}},
                                {"results", results}}});
  return sarif.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace tare::report
