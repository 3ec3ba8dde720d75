// Text, HTML, JUnit, SARIF and YAML of a report whose names are hostile (bad-inputs B12): nothing of them reaches a terminal, a page or a parser unescaped.
#include "compiler/report/Writers.h"
#include "sample.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

using namespace tare::report;

static bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(Writers, TextShowsVerdictsAndEscapesControls) {
  std::string text = toText(sampleReport());
  EXPECT_TRUE(has(text, "1 of 3 candidates pruned, 2 rejected, 0 frozen"));
  EXPECT_TRUE(has(text, "WEIGHT_NOISE_DETECTED"));
  EXPECT_TRUE(has(text, "proved"));
  EXPECT_TRUE(has(text, "-10.0%"));
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_TRUE(has(text, "\\x1b[31m"));
}

TEST(Writers, HtmlIsSelfContainedAndEscaped) {
  std::string html = toHtml(sampleReport());
  EXPECT_FALSE(has(html, "<script"));
  EXPECT_TRUE(has(html, "&lt;script&gt;"));
  EXPECT_FALSE(has(html, "\x1b"));
  for (auto external : {"http:", "https:", "src=", "href=", "@import", "url("}) EXPECT_FALSE(has(html, external)) << external;
  EXPECT_TRUE(has(html, "Content-Security-Policy"));
  EXPECT_TRUE(has(html, "prefers-color-scheme:dark"));
  EXPECT_TRUE(has(html, "title=\"two outputs\">not measured"));
  EXPECT_TRUE(has(html, "class=\"badge pruned\""));
  // Every table row, details and div that is opened is closed.
  for (std::string tag : {"div", "table", "tr", "details", "dl", "main", "td", "span"}) {
    size_t open = 0, closed = 0;
    for (size_t at = 0; (at = html.find("<" + tag, at)) != std::string::npos; at++) open += html[at + tag.size() + 1] == ' ' || html[at + tag.size() + 1] == '>';
    for (size_t at = 0; (at = html.find("</" + tag + ">", at)) != std::string::npos; at++) closed++;
    EXPECT_EQ(open, closed) << tag;
  }
}

TEST(Writers, JUnitCountsAndEscapes) {
  std::string xml = toJUnit(sampleReport());
  EXPECT_TRUE(has(xml, "tests=\"3\" failures=\"2\""));
  EXPECT_TRUE(has(xml, "<failure type=\"WEIGHT_NOISE_DETECTED\""));
  EXPECT_FALSE(has(xml, "<script"));
  EXPECT_FALSE(has(xml, "\x1b"));
}

TEST(Writers, SarifIsVersion210WithOneResultPerCandidate) {
  auto j = nlohmann::json::parse(toSarif(sampleReport()));
  EXPECT_EQ(j["version"], "2.1.0");
  auto &run = j["runs"][0];
  ASSERT_EQ(run["results"].size(), 3u);
  EXPECT_EQ(run["results"][0]["kind"], "pass");
  EXPECT_EQ(run["results"][0]["level"], "none");
  EXPECT_EQ(run["results"][1]["ruleId"], "WEIGHT_NOISE_DETECTED");
  EXPECT_EQ(run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "model.onnx");
  std::set<std::string> rules;
  for (auto &rule : run["tool"]["driver"]["rules"]) rules.insert(rule["id"]);
  for (auto &result : run["results"]) EXPECT_TRUE(rules.count(result["ruleId"]));
}

TEST(Writers, ConfigurationReadsBackAsYaml) {
  auto yaml = YAML::Load(toConfiguration(sampleReport()));
  ASSERT_EQ(yaml["pruned_layers"].size(), 1u);
  EXPECT_EQ(yaml["pruned_layers"][0].as<std::string>(), "layers.1.pos_enc");
  ASSERT_EQ(yaml["rejected_layers"].size(), 2u);
  EXPECT_EQ(yaml["rejected_layers"][0]["name"].as<std::string>(), kHostile);
  EXPECT_EQ(yaml["rejected_layers"][1]["code"].as<std::string>(), "NOT_ONE_OUTPUT");
  EXPECT_EQ(yaml["frozen_layers"].size(), 0u);
  EXPECT_EQ(yaml["policy"].as<std::string>(), "strict");
  EXPECT_EQ(yaml["precision"].as<std::string>(), "f32");
}

TEST(Writers, NumbersDoNotDependOnTheLocale) {
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(shortest(1e-6), "1e-06");
  EXPECT_EQ(readableCount(1234567), "1.23 M");
  EXPECT_EQ(readableBytes(409600), "400 KiB");
  EXPECT_EQ(readableCount(std::nullopt), "-");
}

TEST(Writers, EmptyReportHasEveryForm) {
  Report empty;
  for (auto format : {Format::Text, Format::Json, Format::Html, Format::JUnit, Format::Sarif}) EXPECT_FALSE(write(empty, format).empty());
  EXPECT_EQ(empty.zeroRate(), 0);
}
