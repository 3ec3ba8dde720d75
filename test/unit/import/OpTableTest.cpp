// The op table: sorted, unambiguous, versions in order; and docs/ops.md, which is written from it (run with TARE_UPDATE=1 to rewrite the page).
#include "compiler/import/OpTable.h"
#include "test/support/TempDir.h"
#include <gtest/gtest.h>

using namespace tare;

TEST(OpTable, RowsAreConsistent) {
  std::string previous;
  for (auto &row : opTable()) {
    std::string key = std::string(row.domain) + "::" + row.name;
    EXPECT_LT(previous, key) << "rows are sorted by domain and name, each once";
    previous = key;
    ASSERT_FALSE(row.since.empty()) << key;
    for (size_t i = 1; i < row.since.size(); ++i) EXPECT_LT(row.since[i - 1], row.since[i]) << key;
    EXPECT_NE(std::find(row.since.begin(), row.since.end(), row.newest), row.since.end()) << key;
    EXPECT_LE(row.since.back(), kNewestOpset) << key;
    EXPECT_LE(row.minInputs, row.maxInputs) << key;
    EXPECT_NE(row.import, nullptr) << key;
  }
}

TEST(OpTable, Versions) {
  EXPECT_EQ(lookUp("", "Add", 13).version, 13);
  EXPECT_EQ(lookUp("ai.onnx", "Add", 12).version, 7);
  EXPECT_NE(lookUp("ai.onnx", "Add", 28).row, nullptr);
  EXPECT_EQ(lookUp("", "Gelu", 17).row, nullptr);
  EXPECT_EQ(lookUp("", "NoSuchOp", 17).why, "not in the op table");
  EXPECT_EQ(lookUp("com.acme", "Add", -1).why, "the model imports no opset for domain 'com.acme'");
}

TEST(OpTable, PageIsCurrent) {
  std::string page = "# Operators\nWhat `tare compile` imports from ONNX: written from the op table (`compiler/import/OpTable.cpp`) by `unit-op-table` with `TARE_UPDATE=1`; a test\n"
                     "compares it. An operator whose version in the model's opset is newer than its row is unsupported. `tare compile --dry-run` prints a model's coverage.\n\n" +
                     describeOpTable();
  std::string path = "docs/ops.md"; // tests run in the source folder
  if (std::getenv("TARE_UPDATE")) std::ofstream(path) << page;
  EXPECT_EQ(test::readFile(path), page) << "run TARE_UPDATE=1 build/bin/unit-op-table in the source folder";
}
