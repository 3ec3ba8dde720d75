// Two passes: an event pass that refuses double keys, deep nesting and floods without building anything, then nlohmann's own parser.
#include "compiler/import/StrictJson.h"
#include "compiler/graph/Failure.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using Json = nlohmann::json;

namespace tare {
namespace {
/// nlohmann's SAX interface; returning false stops the parse.
struct Checker {
  const JsonLimits &limits;
  std::vector<StringSet<>> objects; // keys seen in each open object; an empty set for arrays
  uint64_t keyCount = 0;
  std::string problem;
  size_t position = 0;

  explicit Checker(const JsonLimits &limits) : limits(limits) {}

  bool stop(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool open() {
    if (objects.size() >= limits.depth) return stop("nesting deeper than " + std::to_string(limits.depth));
    objects.emplace_back();
    return true;
  }
  bool close() {
    objects.pop_back();
    return true;
  }
  bool key(std::string &name) {
    if (++keyCount > limits.keys) return stop("more than " + std::to_string(limits.keys) + " " + limits.keysAre);
    return objects.back().insert(name).second || stop("duplicate key \"" + name.substr(0, 64) + "\"");
  }
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_float(double, const std::string &) { return true; }
  bool string(std::string &) { return true; }
  bool binary(Json::binary_t &) { return true; }
  bool start_object(size_t) { return open(); }
  bool end_object() { return close(); }
  bool start_array(size_t) { return open(); }
  bool end_array() { return close(); }
  bool parse_error(size_t at, const std::string &, const nlohmann::detail::exception &error) {
    position = at;
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ... - why; last read: 'raw bytes'; expected ...": keep the why,
    // the raw bytes may be anything.
    StringRef text = StringRef(error.what()).split("; last read").first;
    return stop(text.substr(text.rfind(": syntax error") == StringRef::npos ? 0 : text.rfind(": syntax error") + 2).str());
  }
};
} // namespace

Expected<Json> parseStrictJson(StringRef text, StringRef file, StringRef what, const JsonLimits &limits) {
  Checker checker(limits);
  bool good = Json::sax_parse(text.begin(), text.end(), &checker);
  if (!good || !checker.problem.empty()) {
    std::string where = checker.position ? " at byte " + std::to_string(checker.position) : "";
    return refuse(("malformed JSON in " + what + where + ": " + checker.problem).str()).inFile(file.str());
  }
  Json document = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return refuse(("malformed JSON in " + what).str()).inFile(file.str());
  return document;
}
} // namespace tare
