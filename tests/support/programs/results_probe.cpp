// Tests that fail, are skipped and pass, for ctest_results_test.sh.
#include <gtest/gtest.h>

TEST(OneFails, Always) { FAIL() << "as it should"; }
TEST(AllFail, First) { FAIL() << "as it should"; }
TEST(AllFail, Second) { FAIL() << "as it should"; }
TEST(SomeFail, Fails) { FAIL() << "as it should"; }
TEST(SomeFail, IsSkipped) { GTEST_SKIP() << "as it should"; }
TEST(AllSkipped, First) { GTEST_SKIP() << "as it should"; }
TEST(AllSkipped, Second) { GTEST_SKIP() << "as it should"; }
TEST(SomeSkipped, Passes) {}
TEST(SomeSkipped, IsSkipped) { GTEST_SKIP() << "as it should"; }
TEST(Pass, Always) {}
