// Writes the small engine of test/support/TestEngine.h to the path given: a file for tests that do not link the writer.
#include "test/support/TestEngine.h"

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  tare::test::writeTestEngine(argv[1]);
  tare_error error;
  tare_engine_t *engine = tare_engine_open(argv[1], nullptr, &error);
  tare_engine_close(engine);
  return engine && !::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 0 : 1;
}
