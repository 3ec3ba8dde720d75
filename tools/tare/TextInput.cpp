// Bytes become tokens, anchors become token positions (TextInput.h). The text is read as it is: no normalisation, so that bytes and offsets agree.
#include "tools/tare/TextInput.h"
#include "runtime/tare_anchors.h"
#include "tools/tare/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <memory>

namespace tare::cli {

static constexpr uint64_t kMostBytes = uint64_t(64) << 20;

template <typename T> static Array arrayOf(uint8_t dtype, const std::vector<T> &values) {
  return {dtype, {1, static_cast<int64_t>(values.size())}, std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T))};
}

llvm::Expected<ArrayMap> textInputs(const EngineHandle &engine, const std::string &path) {
  auto report = engine.report();
  if (!report) return report.takeError();
  std::string ids, others;
  bool takesAnchors = false;
  for (auto &input : engine.inputs()) {
    takesAnchors |= std::string(input.name) == "anchors" && input.dtype == TARE_I32;
    if (input.optional) continue;
    bool isIds = ids.empty() && input.dtype == TARE_I64 && input.rank == 2 && report->idsBelow.count(input.name);
    (isIds ? ids : others) += (isIds || others.empty() ? "" : ", ") + std::string(input.name);
  }
  int64_t rows = ids.empty() ? 0 : report->idsBelow.at(ids);
  if (!others.empty() || rows < 256 || rows > 511) {
    std::string has = ids.empty() ? "no input of token ids" : fmt::format("{} with a table of {} rows{}", ids, rows, others.empty() ? "" : ", and also needs " + others);
    return refuse("--text needs a byte-level model: this engine has " + has).inFile(engine.path).withHint("give arrays with --inputs; byte-level: one required input of ids, a table of 256 to 511 rows");
  }
  auto text = readFile(path, kMostBytes);
  if (!text) return text.takeError();
  const int64_t start = rows > 256; // the start token
  std::vector<int64_t> tokens(static_cast<size_t>(start), 256);
  for (char c : *text) tokens.push_back(static_cast<unsigned char>(c));
  if (tokens.empty()) return refuse("the text is empty").inFile(path);
  ArrayMap arrays;
  arrays[ids] = arrayOf(TARE_I64, tokens);
  if (!takesAnchors) return arrays;
  tare_error error{};
  std::unique_ptr<tare_anchors_t, decltype(&tare_anchors_destroy)> found(tare_scan_anchors(text->data(), text->size(), nullptr, &error), tare_anchors_destroy);
  if (!found) return fail(static_cast<ExitCode>(error.code), error.message).inFile(path);
  std::vector<int32_t> anchors;
  for (size_t i = 0; i < tare_anchors_count(found.get()); ++i) anchors.push_back(static_cast<int32_t>(tare_anchors_get(found.get(), i)->byte_begin) + static_cast<int32_t>(start));
  arrays["anchors"] = arrayOf(TARE_I32, anchors);
  return arrays;
}

} // namespace tare::cli
