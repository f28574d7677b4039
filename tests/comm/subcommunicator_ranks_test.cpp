#include <numeric>

#include "comm/collectives/collectives.h"
#include "comm/subcommunicator.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

TEST(Subcommunicator, MapsRanksAndCountsMessagesInTheParent) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (int per_node : {1, 2, 3, 20}) {
        const NodePlan plan{comm.size(), per_node};
        Subcommunicator node(comm, plan.node_of(comm.rank()));
        EXPECT_EQ(node.rank(), comm.rank() % per_node);
        EXPECT_EQ(node.size(), std::min(per_node, comm.size() - plan.leader(comm.rank())));

        // broadcasts the leader's number inside its node, and sums the numbers over the leaders
        const uint64_t before = comm.bytes_sent();
        int number = comm.rank();
        broadcast(ctx, node, 0, std::as_writable_bytes(std::span(&number, 1)));
        EXPECT_EQ(number, plan.leader(comm.rank()));
        EXPECT_EQ(comm.bytes_sent() - before, node.bytes_sent());
        if (node.rank() != 0) continue;
        Subcommunicator leaders(comm, plan.leaders());
        EXPECT_EQ(leaders.size(), plan.nodes());
        const auto sum = sum_over_ranks(ctx, leaders, static_cast<uint64_t>(comm.rank()));
        const std::vector<int> all = plan.leaders();
        EXPECT_EQ(sum, std::accumulate(all.begin(), all.end(), uint64_t{0}));
      }
    });
}

TEST(NodePlan, TheRanksOfAMachineAreANode) {
  HostId a{}, b{}, c{};
  a[0] = 'a', b[0] = 'b', c[0] = 'c';
  const NodePlan plan({b, a, b, c, a, b});
  EXPECT_EQ(plan.nodes(), 3);
  EXPECT_EQ(plan.leaders(), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(plan.node_of(5), (std::vector<int>{0, 2, 5}));
  EXPECT_EQ(plan.node_of(1), (std::vector<int>{1, 4}));
  EXPECT_EQ(plan.node_of(3), (std::vector<int>{3}));
  EXPECT_EQ(plan.leader(4), 1);
}

TEST(Subcommunicator, ARankThatIsNoMemberIsAnError) {
  run_ranks(2, [](Context&, Communicator& comm) {
    EXPECT_THROW(Subcommunicator(comm, {1 - comm.rank()}), std::logic_error);
  });
}

}  // namespace
}  // namespace tw
