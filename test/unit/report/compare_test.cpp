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

TEST(Compare, FidelityChecks) {
  Report a = sampleReport(), b = a;
  ASSERT_FALSE(a.checks.empty());
  Check &before = a.checks[0], &after = b.checks[0];
  before.form = "sparse", before.precision = "int8", before.code = "", before.windowAgreement = {100, 100};
  after = before;
  const std::string name = before.name == kHostile ? "hostile" : before.name;
  EXPECT_EQ(kinds(a, b), "");
  after.precision = "int4", after.windowAgreement = {100, 93.75};
  EXPECT_EQ(kinds(a, b), "lower-fidelity:" + name);
  EXPECT_EQ(kinds(b, a), "changed:" + name);
  after.form = "dense", after.windowAgreement = {};
  EXPECT_EQ(kinds(a, b), "newly-dense:" + name);
  b.checks.erase(b.checks.begin());
  EXPECT_EQ(kinds(a, b), "disappeared:" + name);
  EXPECT_EQ(kinds(b, a), "appeared:" + name);
}
