// An error of one rank is an error of all, and names the rank.
#include "apps/common/rank_utils.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"

namespace tw::test {
namespace {

/// What all of three ranks throw when these do.
std::string thrown(const std::vector<int>& ranks) {
  std::string text;
  run_ranks(3, [&](Context&, Communicator& comm) {
    const std::string mine = error_text<UserError>([&] {
      run_collectively(comm, [&] {
        check(std::ranges::find(ranks, comm.rank()) == ranks.end(), "no file of {}", comm.rank());
      });
    });
    if (comm.rank() == 0) text = mine;
    barrier(comm);
    EXPECT_EQ(mine, text);
  });
  return text;
}

TEST(RunCollectively, AllRanksThrowTheErrorOfTheLowestRank) {
  EXPECT_EQ(thrown({0, 1, 2}), "no file of 0");
  EXPECT_EQ(thrown({2}), "no file of 2 (rank 2)");
  EXPECT_EQ(thrown({1, 2}), "no file of 1 (rank 1)");
}

}  // namespace
}  // namespace tw::test
