// Bad and large input: ill-formed UTF-8, NUL, surrogates, giant lines, floods. Must hold: reported with offsets, no crash, work that grows linearly (steps are
// counted, not time), memory that does not grow with the text.
#include "test/unit/anchors/Scan.h"
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace tare::test;

TEST(Input, IllFormedUtf8IsReportedWithOffsets) {
  // By maximal subparts (Unicode, table 3-7): E4 B8 is one, FF is one, each byte of a surrogate is one, C0 80 are two.
  const std::string text = "第4条 \xff 第\xe4\xb8" "5条 \xed\xa0\x80 \xc0\x80 Section 6 \xf0\x9f";
  auto seen = scan(text);
  EXPECT_EQ(seen.summary.invalid_utf8, 8u);
  EXPECT_EQ(seen.summary.invalid_offsets[0], 8u);
  EXPECT_EQ(seen.summary.invalid_offsets[1], 13u);
  EXPECT_EQ(seen.summary.invalid_offsets[2], 20u);
  EXPECT_EQ(seen.summary.invalid_offsets[7], text.size() - 2);
  EXPECT_EQ(seen.summary.conservative, 1);
  ASSERT_EQ(seen.anchors.size(), 2u);
  EXPECT_EQ(seen.anchors[0].value, "4");
  EXPECT_EQ(seen.anchors[1].value, "6");
  EXPECT_EQ(seen.anchors[1].byteBegin, text.find("Section"));
  for (size_t piece : {1, 2, 3, 5}) {
    auto cut = scan(text, piece);
    EXPECT_EQ(cut.anchors, seen.anchors);
    EXPECT_EQ(cut.summary.invalid_utf8, 8u);
  }
}

TEST(Input, ControlCharactersAreReported) {
  auto seen = scan(std::string("第4条\0第5条\x01\x7f\xc2\x85\tx\r\n\f", 24));
  EXPECT_EQ(seen.summary.control_characters, 4u);
  EXPECT_EQ(seen.summary.control_offsets[0], 7u);
  EXPECT_EQ(seen.summary.invalid_utf8, 0u);
  EXPECT_EQ(seen.summary.conservative, 1);
  EXPECT_EQ(seen.anchors.size(), 2u);
  EXPECT_EQ(scan("ordinary\ttext\r\n").summary.conservative, 0);
}

TEST(Input, EmptyAndWrongCalls) {
  EXPECT_TRUE(scan("").anchors.empty());
  tare_error error{};
  EXPECT_EQ(tare_scan_anchors(nullptr, 3, nullptr, &error), nullptr);
  EXPECT_EQ(error.code, TARE_USAGE);
  EXPECT_EQ(tare_anchor_scanner_create(nullptr, nullptr, nullptr, &error), nullptr);
  tare_anchors_t *none = tare_scan_anchors(nullptr, 0, nullptr, &error);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(tare_anchors_get(none, 0), nullptr);
  tare_anchors_destroy(none);
}

/// Floods: a unit that is repeated.
static const std::vector<std::string> floods = {"[", "(", "`", "``` ", "<", "<a ", "<a title='", "<a b=\"", "](", "](x", "@", "a@", "www.", "http:/", "#", "# ", "|", "|---", "- ", "=\n", "\n", "\n\n", " ", "\t", "\xe2\x80\x8b", "\xcc\x81",
  "e\xcc\x81\xcc\xa3", "第", "第1、", "第一", "第（", "第 ", "附件", "附件一、", "附件一和", "表", "表1", "参见", "参见《", "见", "依照本条", "Section ", "Sections 1, ", "Section 1 to ", "Sec-\n", "see ", "as set out ", "in accordance ", "§", "1.", "a", "\xff", "\0",
  "\xed\xa0\x80", "\r", "\r\n", "<h1>", "</h1>", "<h1>x</h1>", "<!--", "<pre>", "*", "_", "① ", "㈠", "ﷺ", "𝐒", "\xe1\x84\x80\xe1\x85\xa1", "第1条第1款", "第1条（", "第1至", "(i)", "Article I ", "1-", "1.1.", "条款项目"};

TEST(Input, WorkIsLinearOnFloods) {
  for (auto unit : floods) {
    if (unit.empty()) unit = std::string(1, '\0');
    std::string once, twice;
    while (once.size() < 60000) once += unit;
    twice = once + once;
    const uint64_t a = scan(once).summary.steps, b = scan(twice).summary.steps;
    EXPECT_LE(b, 2.2 * double(a) + 500000) << "'" << unit << "': " << a << " then " << b;
    EXPECT_LE(a, 200 * once.size()) << "'" << unit << "'";
  }
}

TEST(Input, BacktickRunsOfAllLengthsAreLinear) {
  auto runs = [](size_t count) {
    std::string text;
    for (size_t k = 0; k < count; ++k) text += std::string(1 + k % 90, '`') + "x ";
    return text;
  };
  EXPECT_LE(scan(runs(8000)).summary.steps, 2.2 * double(scan(runs(4000)).summary.steps) + 300000);
}

TEST(Input, MillionNestedBrackets) {
  std::string text = std::string(1000000, '[') + "第4条" + std::string(1000000, ']') + std::string(1000000, '(') + " Section 5 " + std::string(1000000, ')');
  auto seen = scan(text);
  ASSERT_EQ(seen.anchors.size(), 2u);
  EXPECT_EQ(seen.anchors[0].byteBegin, 1000000u);
}

TEST(Input, GiantLine) {
  std::string line;
  while (line.size() < 10000000) line += "甲方应当在第4.2条规定的期限内付款，详见附件三; the fee is set out in Section 7.1(b) and Table 2-1. ";
  auto seen = scan(line, 65536);
  EXPECT_EQ(seen.anchors.size() % 4, 0u);
  EXPECT_GT(seen.anchors.size(), 200000u);
  for (size_t i = 4; i < seen.anchors.size(); ++i) ASSERT_EQ(seen.anchors[i].value, seen.anchors[i - 4].value) << i;
}

TEST(Input, MemoryDoesNotGrowWithTheText) {
  auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss; // KiB
  };
  uint64_t anchors = 0;
  tare_error error{};
  tare_anchor_options options{sizeof options, 0, 0};
  auto count = [](void *user, const tare_anchor *) { ++*static_cast<uint64_t *>(user); };
  tare_anchor_scanner_t *scanner = tare_anchor_scanner_create(&options, count, &anchors, &error);
  const std::string piece = "第十二条 付款方式见附件三。\nSection 4 applies, as set out in Annex B.\n\n";
  long before = 0;
  for (size_t k = 0; k < 150000; ++k) {
    ASSERT_EQ(tare_anchor_scanner_feed(scanner, piece.data(), piece.size(), &error), TARE_OK);
    if (k == 20000) before = peak();
  }
  tare_anchor_summary summary{};
  ASSERT_EQ(tare_anchor_scanner_finish(scanner, &summary, &error), TARE_OK);
  tare_anchor_scanner_destroy(scanner);
  EXPECT_EQ(anchors, 4 * 150000u);
  EXPECT_GT(summary.bytes, 12000000u);
  EXPECT_LE(peak() - before, 1024);
}
