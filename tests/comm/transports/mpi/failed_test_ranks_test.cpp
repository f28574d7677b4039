// A test that fails on one rank only; failed_test_test.sh runs it.

#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

TEST(FailedTest, DISABLED_FailsOnRank1) {
  run_ranks(2, [](Context&, Communicator& comm) { EXPECT_NE(comm.rank(), 1); });
}

}  // namespace
}  // namespace tw
