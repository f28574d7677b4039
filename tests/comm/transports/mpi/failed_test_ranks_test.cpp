// A test that fails on one rank only. It exists only for failed_test_test.sh, which sets
// TW_FAIL_ON_RANK_1.

#include <cstdlib>

#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

class FailsOnRank1 : public testing::Test {
  void TestBody() override {
    run_ranks(2, [](Context&, Communicator& comm) { EXPECT_NE(comm.rank(), 1); });
  }
};

const bool failing_test_registered =
    std::getenv("TW_FAIL_ON_RANK_1") != nullptr &&
    testing::RegisterTest("FailedTest", "FailsOnRank1", nullptr, nullptr, __FILE__, __LINE__,
                          []() -> testing::Test* { return new FailsOnRank1; }) != nullptr;

}  // namespace
}  // namespace tw
