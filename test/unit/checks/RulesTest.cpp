// Marking rules: matching by segments, globs, regular expressions and metadata; refusals that name line and key.
#include "compiler/checks/Rules.h"
#include <gtest/gtest.h>

using namespace tare::checks;

namespace {

std::vector<std::string> names(const std::string &yaml, const NodeFacts &facts) {
  auto rules = parseRules(yaml, "r.yaml");
  EXPECT_TRUE(bool(rules)) << llvm::toString(rules.takeError());
  std::vector<std::string> found;
  for (const Rule &rule : rules->rules)
    for (const Mark &mark : rule.match(facts, "rules")) found.push_back(mark.name + ":" + mark.role);
  return found;
}
std::string refusal(const std::string &yaml) {
  auto rules = parseRules(yaml, "r.yaml");
  return rules ? "" : llvm::toString(rules.takeError());
}
using Names = std::vector<std::string>;

TEST(Rules, SegmentsMatchWhole) {
  std::string yaml = "rules:\n  - segments: [pos_enc]\n    role: position_encoding_enhancer\n";
  EXPECT_EQ(names(yaml, {"layers.7.pos_enc.fc1", "matmul", {}}), Names{"layers.7.pos_enc:position_encoding_enhancer"});
  EXPECT_EQ(names(yaml, {"layers.7.pos_encoder.fc1", "matmul", {}}), Names{});
  EXPECT_EQ(names(yaml, {"pos_enc.0.pos_enc", "matmul", {}}), (Names{"pos_enc:position_encoding_enhancer", "pos_enc.0.pos_enc:position_encoding_enhancer"}));
}

TEST(Rules, GlobsGoSegmentBySegment) {
  EXPECT_EQ(names("rules: [{path: 'layers.*.ffn', role: block}]", {"layers.3.ffn.up", "", {}}), Names{"layers.3.ffn:block"});
  EXPECT_EQ(names("rules: [{path: 'layers.*', role: block}]", {"layers.3.ffn.up", "", {}}), Names{"layers.3:block"});
  EXPECT_EQ(names("rules: [{path: '**.ffn', role: block}]", {"a.b.ffn", "", {}}), Names{"a.b.ffn:block"});
  EXPECT_EQ(names("rules: [{path: 'a.**', role: block}]", {"a.b.ffn", "", {}}), Names{"a:block"});
  EXPECT_EQ(names("rules: [{path: 'layers.1?', role: block}]", {"layers.1.x", "", {}}), Names{});
}

TEST(Rules, RegexOpAndMetadata) {
  EXPECT_EQ(names("rules: [{path_regex: 'h\\.[0-9]+\\.attn', role: block}]", {"h.12.attn.q", "", {}}), Names{"h.12.attn:block"});
  EXPECT_EQ(names("rules: [{op: 'unary.*', metadata: {origin: 'gate-*'}, layer: g, role: gate}]", {"", "unary.tanh", {{"origin", "gate-3"}}}), Names{"g:gate"});
  EXPECT_EQ(names("rules: [{op: 'unary.*', metadata: {origin: 'gate-*'}, layer: g, role: gate}]", {"", "unary.tanh", {}}), Names{});
}

TEST(Rules, Refusals) {
  EXPECT_NE(refusal("rules: [{path: a, role: spaceship}]").find("unknown role 'spaceship'"), std::string::npos);
  EXPECT_NE(refusal("rules:\n  - path: a\n    rolle: gate\n").find("line 3: unknown key 'rolle'"), std::string::npos);
  EXPECT_NE(refusal("rules: [{role: gate}]").find("needs a condition"), std::string::npos);
  EXPECT_NE(refusal("rules: [{path_regex: '(', role: gate}]").find("no regular expression"), std::string::npos);
  EXPECT_NE(refusal("rules: [{path: '[', role: gate}]").find("no glob"), std::string::npos);
  EXPECT_NE(refusal("rules: 5").find("must be a list"), std::string::npos);
  EXPECT_NE(refusal("rules: [a").find("not valid"), std::string::npos);
  EXPECT_NE(refusal("policy: generous").find("unknown policy"), std::string::npos);
  EXPECT_NE(refusal("thresholds: {weight: -1}").find("finite number"), std::string::npos);
  EXPECT_NE(refusal("thresholds: {weight: .nan}").find("finite number"), std::string::npos);
  EXPECT_NE(refusal(std::string(1000, '[')).find("nests deeper"), std::string::npos);
  EXPECT_EQ(refusal(""), "");
}

TEST(Rules, Settings) {
  auto rules = parseRules("policy: proved\nthresholds: {weight: 1e-5}\n", "r.yaml");
  ASSERT_TRUE(bool(rules));
  EXPECT_EQ(rules->policy, tare::Policy::Proved);
  EXPECT_EQ(rules->weightThreshold, 1e-5);
  EXPECT_FALSE(rules->forwardThreshold);
}

} // namespace
