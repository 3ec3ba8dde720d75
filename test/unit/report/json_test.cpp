// The JSON form: keys of cli.md, null with why, the same report after a round trip, and refusal of everything that is no report.
#include "compiler/graph/Failure.h"
#include "compiler/report/Writers.h"
#include "sample.h"
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

using namespace tare::report;

static std::string refusal(const std::string &text) {
  auto report = fromJson(text, "r.json");
  if (report) return "accepted";
  std::string message;
  llvm::handleAllErrors(report.takeError(), [&](const tare::Failure &f) {
    EXPECT_EQ(f.code, tare::ExitCode::Refused);
    EXPECT_EQ(f.file, "r.json");
    EXPECT_FALSE(f.hint.empty());
    message = f.message;
  });
  return message;
}

TEST(ReportJson, RoundTripIsIdentity) {
  std::string once = toJson(sampleReport());
  auto read = fromJson(once, "r.json");
  ASSERT_TRUE(static_cast<bool>(read));
  EXPECT_EQ(toJson(*read), once);
  EXPECT_EQ(read->candidates[1].name, kHostile);
}

TEST(ReportJson, HasThePinnedKeys) {
  auto j = nlohmann::json::parse(toJson(sampleReport()));
  for (auto key : {"tare", "schema", "model", "policy", "thresholds", "nan_mode", "calibration", "candidates", "could_be_removed", "checks", "zero_rate", "compute_estimation", "heatmap"}) EXPECT_TRUE(j.contains(key)) << key;
  for (auto key : {"name", "role", "marked_by", "verdict", "basis", "code", "line", "weights", "forward", "gradient", "saves"}) EXPECT_TRUE(j["candidates"][0].contains(key)) << key;
  EXPECT_EQ(j["candidates"][1]["weights"]["largest"]["index"], (std::vector<int>{3, 100}));
  EXPECT_EQ(j["candidates"][1]["weights"]["max_abs"].get<double>(), 1.1920928955078125e-07);
  EXPECT_DOUBLE_EQ(j["zero_rate"].get<double>(), 1.0 / 3);
  EXPECT_EQ(j["compute_estimation"]["full"]["flops"], 128000);
  EXPECT_EQ(j["candidates"][0]["basis"], "proved");
  EXPECT_TRUE(j["candidates"][0]["code"].is_null());
}

TEST(ReportJson, FidelityChecks) {
  auto j = nlohmann::json::parse(toJson(sampleReport()))["checks"];
  ASSERT_EQ(j.size(), 3u);
  for (auto key : {"name", "form", "heads", "rank", "precision", "fidelity", "window_agreement", "overall_agreement", "code", "line", "anchors", "evaluated_tokens", "tokens", "tried"})
    EXPECT_TRUE(j[0].contains(key)) << key;
  EXPECT_TRUE(j[0]["fidelity"].is_null() && j[0]["code"].is_null() && j[0]["anchors"].is_null() && j[0]["tried"].empty());
  EXPECT_EQ(j[1]["window_agreement"], (std::vector<double>{100, 100, 100}));
  EXPECT_EQ(j[1]["tried"][0]["precision"], "int4");
  EXPECT_EQ(j[1]["tried"][0]["window_agreement"], (std::vector<double>{91, 100, 100}));
  EXPECT_EQ(j[2]["code"], "FIDELITY_BELOW_THRESHOLD");
  auto read = fromJson(toJson(sampleReport()), "r.json");
  ASSERT_TRUE(static_cast<bool>(read));
  EXPECT_EQ(read->checks[1].tried.size(), 2u);
  EXPECT_EQ(read->checks[1].tokens, 804);
  EXPECT_EQ(read->checks[2].line, sampleReport().checks[2].line);
}

TEST(ReportJson, MissingMeasurementsAreNullWithWhy) {
  auto j = nlohmann::json::parse(toJson(sampleReport()));
  EXPECT_TRUE(j["candidates"][1]["gradient"]["parameters"].is_null());
  EXPECT_EQ(j["candidates"][1]["gradient"]["why"], "no VJP for graph.unary");
  EXPECT_FALSE(j["candidates"][0]["gradient"].contains("why"));
  EXPECT_TRUE(j["candidates"][2]["weights"]["elements"].is_null());
  EXPECT_EQ(j["candidates"][2]["weights"]["why"], "two outputs");
  EXPECT_EQ(j["heatmap"][1]["why"], "not finite");
  Report r = sampleReport();
  r.candidates[0].forward.value = std::numeric_limits<double>::quiet_NaN();
  j = nlohmann::json::parse(toJson(r));
  EXPECT_TRUE(j["candidates"][0]["forward"]["l2"].is_null());
  EXPECT_EQ(j["candidates"][0]["forward"]["why"], "the value is nan");
}

TEST(ReportJson, RefusesWhatIsNoReport) {
  EXPECT_NE(refusal("").find("not a readable report"), std::string::npos);
  EXPECT_NE(refusal("{\"tare\": \"0.1.0\"}").find("no report of tare"), std::string::npos);
  EXPECT_NE(refusal("{\"tare\": \"9\", \"schema\": 2, \"candidates\": []}").find("schema 2"), std::string::npos);
  EXPECT_NE(refusal("{\"tare\": \"0.1.0\", \"schema\": 1, \"candidates\": [{\"name\": 3}]}").find("not a readable report"), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '[')).find("64 levels"), std::string::npos);
  std::string text = toJson(sampleReport());
  EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("not a readable report"), std::string::npos);
}
