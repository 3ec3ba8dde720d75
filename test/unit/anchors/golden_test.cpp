// The hand-marked sets (golden.jsonl and own.jsonl in test/data/anchors; docs/anchors.md): exact type, value, byte and char span, with the network and without it; and
// the same anchors however a text is cut into pieces.
#include "test/unit/anchors/Scan.h"
#include <gtest/gtest.h>

using namespace tare::test;

static std::vector<Found> marked(const nlohmann::json &one) {
  std::vector<Found> out;
  for (auto &a : one["anchors"]) out.push_back({a["type"], a["value"], a["byte"][0], a["byte"][1], a["char"][0], a["char"][1]});
  return out;
}

/// Precision and recall over all cases; mismatches are printed.
static std::pair<double, double> rates(const std::string &file, int noNetwork) {
  size_t golden = 0, predicted = 0, both = 0;
  for (auto &one : casesOf(file)) {
    auto want = marked(one), got = scan(one["text"], 0, {sizeof(tare_anchor_options), 0, noNetwork}).anchors;
    golden += want.size(), predicted += got.size();
    for (auto &a : got)
      if (std::find(want.begin(), want.end(), a) != want.end()) ++both;
      else printf("%s extra %s=%s [%zu, %zu)\n", one["id"].get<std::string>().c_str(), a.type.c_str(), a.value.c_str(), size_t(a.byteBegin), size_t(a.byteEnd));
    for (auto &a : want)
      if (std::find(got.begin(), got.end(), a) == got.end())
        printf("%s missed %s=%s [%zu, %zu)\n", one["id"].get<std::string>().c_str(), a.type.c_str(), a.value.c_str(), size_t(a.byteBegin), size_t(a.byteEnd));
  }
  return {double(both) / double(predicted), double(both) / double(golden)};
}

TEST(Golden, PrecisionAndRecall) {
  for (const char *file : {"test/data/anchors/golden.jsonl", "test/data/anchors/own.jsonl"})
    for (int noNetwork : {0, 1}) {
      auto [precision, recall] = rates(file, noNetwork);
      EXPECT_GE(precision, 0.99) << file << " no_network " << noNetwork;
      EXPECT_GE(recall, 0.99) << file << " no_network " << noNetwork;
    }
}

TEST(Golden, AnyPiecesGiveTheSame) {
  std::string all;
  for (auto &one : casesOf("test/data/anchors/golden.jsonl")) all += one["text"].get<std::string>() + "\n\n";
  // Longer than several windows, and a giant line without a break.
  std::string text = all + all + all + all, line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  for (auto &t : {text, line, text + line}) {
    auto whole = scan(t);
    ASSERT_GT(whole.anchors.size(), 500u);
    for (size_t piece : {size_t(1), size_t(7), size_t(1000), size_t(4096), size_t(100003)}) {
      auto pieces = scan(t, piece);
      EXPECT_EQ(whole.anchors, pieces.anchors) << "pieces of " << piece;
      EXPECT_EQ(whole.summary.chars, pieces.summary.chars);
    }
  }
}

/// The window's borders decide nothing: a text behind a prefix of any length has the anchors of the text alone, moved.
TEST(Golden, WindowBordersDecideNothing) {
  std::string all;
  for (auto &one : casesOf("test/data/anchors/golden.jsonl"))
    if (one["text"].get<std::string>().find("```") == std::string::npos) all += one["text"].get<std::string>() + "\n\n";
  auto alone = scan(all).anchors;
  for (size_t shift : {100, 5000, 9001, 12345, 16000, 20011, 30000}) {
    std::string prefix(shift, 'x');
    for (size_t i = 79; i < shift; i += 80) prefix[i] = '\n';
    prefix += "\n\n";
    auto moved = scan(prefix + all).anchors;
    ASSERT_EQ(alone.size(), moved.size()) << shift;
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].value, moved[i].value);
      EXPECT_EQ(alone[i].byteBegin + prefix.size(), moved[i].byteBegin);
      EXPECT_EQ(alone[i].charEnd + prefix.size(), moved[i].charEnd);
    }
  }
}
