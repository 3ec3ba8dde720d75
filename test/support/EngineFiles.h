// Where end-to-end tests find things. In: names. Out: the path of an engine that tare_e2e_engine compiled; the arrays of a case of the test models.
// Must hold: TARE_ENGINES and TARE_TEST_DATA are defined (tare_e2e_test does); a case that cannot be read fails the test.
#pragma once
#include "test/support/EngineRunner.h"

namespace tare::test {

inline std::string engine(const std::string &name) { return std::string(TARE_ENGINES) + "/" + name + ".tare"; }

/// `name`: below the folder of test models, without .npz.
inline ArrayMap load(const std::string &name) {
  auto arrays = readNpz(std::string(TARE_TEST_DATA) + "/" + name + ".npz");
  if (!arrays) {
    ADD_FAILURE() << llvm::toString(arrays.takeError());
    return {};
  }
  return std::move(*arrays);
}

/// One of contract-lm's float64 cases.
inline ArrayMap contractCase(const std::string &name) { return load("contract-lm/cases/" + name); }

} // namespace tare::test
