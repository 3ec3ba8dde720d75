// `tare diff`: kinds of differences between two reports.
#include "compiler/report/Writers.h"
#include "sample.h"
#include <gtest/gtest.h>

using namespace tare::report;

static std::string kinds(const Report &a, const Report &b) {
  std::string text;
  for (auto &d : compare(a, b)) text += (text.empty() ? "" : " ") + d.kind + ":" + (d.subject == kHostile ? "hostile" : d.subject);
  return text;
}

TEST(Compare, EqualReportsHaveNoDifferences) { EXPECT_EQ(kinds(sampleReport(), sampleReport()), ""); }

TEST(Compare, VerdictsBothWays) {
  Report a = sampleReport(), b = a;
  b.candidates[0].verdict = "rejected", b.candidates[0].basis = "", b.candidates[0].code = "WEIGHT_ABOVE_THRESHOLD";
  EXPECT_EQ(kinds(a, b), "newly-rejected:layers.1.pos_enc");
  EXPECT_EQ(kinds(b, a), "newly-pruned:layers.1.pos_enc");
  b = a;
  b.candidates[0].basis = "evidence";
  EXPECT_EQ(kinds(a, b), "changed:layers.1.pos_enc");
}

TEST(Compare, AppearedAndDisappeared) {
  Report a = sampleReport(), b = a;
  b.candidates.pop_back();
  EXPECT_EQ(kinds(a, b), "disappeared:odd");
  EXPECT_EQ(kinds(b, a), "newly-rejected:odd");
}

TEST(Compare, EstimatesOnlyAtOneShape) {
  Report a = sampleReport(), b = a;
  b.pruned.flops.value = 200000, b.pruned.memory.value = 100;
  EXPECT_EQ(kinds(a, b), "slower:FLOPs of the pruned plan smaller:memory of the pruned plan");
  b.shape["sequence"] = 64;
  EXPECT_EQ(kinds(a, b), "changed:shape");
}
