#include "tests/support/ranks/exchange_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

Settings nodes_of(int ranks) {
  Settings settings = default_settings();
  settings.set("hierarchical.node", std::to_string(ranks));
  return settings;
}

TEST(Hierarchical, ANodeOfMoreRanksThanAnIntHoldsIsRefused) {
  Settings settings = default_settings();
  for (const char* ranks : {"-1", "2147483647", "4294967296"})
    EXPECT_THROW(settings.set("hierarchical.node", ranks), UserError) << ranks;
}

TEST(Hierarchical, OnlyLeadersSelect) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (int per_node : {1, 2, 3, 16}) {
        ExchangeRig rig(ctx, comm, 1000, "hierarchical", nodes_of(per_node));
        rig.set_gradients(exact_kinds()[1], 0);
        rig.step(50);
        const bool leads = comm.rank() % per_node == 0;
        EXPECT_EQ(rig.selected.count, leads ? 50u : 0u);
        float behind = 0;
        for (float e : rig.residual) behind += std::abs(e);
        EXPECT_EQ(behind > 0, leads);
        EXPECT_EQ(rig.lost(), 0u) << "nodes of " << per_node;
      }
    });
}

TEST(Hierarchical, NodesOfOneRankGiveTheInnerExchange) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      ExchangeRig rig(ctx, comm, 1000, "hierarchical", nodes_of(1)), flat(ctx, comm, 1000, "topk");
      for (uint64_t step = 0; step < 3; ++step) {
        rig.set_gradients(rounding_kind(), step);
        flat.set_gradients(rounding_kind(), step);
        rig.step(50, step);
        flat.step(50, step);
        EXPECT_TRUE(same_bits(rig.sum(), flat.sum()));
        EXPECT_TRUE(same_bits(rig.residual, flat.residual));
      }
    });
}

TEST(Hierarchical, NamesTheRankWithTheBadGradient) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (int bad = 0; bad < comm.size(); ++bad) {
        ExchangeRig rig(ctx, comm, 1000, "hierarchical", nodes_of(3));
        rig.set_gradients(exact_kinds()[1], 0);
        if (comm.rank() >= bad) rig.gradient[static_cast<size_t>(comm.rank())] = NAN;
        rig.step(50);
        EXPECT_EQ(rig.control.nonfinite_rank, bad);
        EXPECT_EQ(rig.control.nonfinite, static_cast<size_t>(bad));
      }
    });
}

TEST(Hierarchical, NodesAreTheMachinesWhereverTheirRanksAre) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& plain) {
      for (int machines : {1, 2, 3}) {  // of unequal numbers of ranks, unless they divide the ranks
        OnMachines comm(plain, machines);
        ExchangeRig rig(ctx, comm, 1000, "hierarchical", nodes_of(0));
        rig.set_gradients(exact_kinds()[1], 0);
        rig.step(50);
        const bool leads = comm.rank() < machines;
        EXPECT_EQ(rig.selected.count, leads ? 50u : 0u);
        EXPECT_EQ(rig.lost(), 0u) << machines << " machines";
      }
    });
}

}  // namespace
}  // namespace tw
