#include "tests/support/ranks/exchange_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

Settings with(const std::string& key, const std::string& value) {
  Settings settings = default_settings();
  settings.set(key, value);
  return settings;
}

/// Gradients of ranks with similar data: a common part plus a part of each rank.
void set_correlated(ExchangeRig& rig, int rank, uint64_t step) {
  const Philox philox(11, Purpose::test);
  for (size_t i = 0; i < rig.residual.size(); ++i) {
    const auto common = philox(step << 32 | i), own = philox((step * 64 + rank + 1) << 32 | i, 1);
    const float value = normal(common[0], common[1])[0] + normal(own[0], own[1])[0];
    rig.gradient[i] = std::round(value * 1000);
  }
}

double loss(Context& ctx, Communicator& comm, const char* put_back) {
  ExchangeRig rig(ctx, comm, 10'000, "gtopk", with("gtopk.put_back", put_back));
  set_correlated(rig, comm.rank(), 0);
  rig.step(100);
  const std::vector<float> total = summed(ctx, comm, rig.before);
  const std::vector<float> behind = summed(ctx, comm, rig.residual);
  double lost = 0, exchanged = 0;
  for (size_t i = 0; i < total.size(); ++i) {
    lost += std::abs(double{total[i]} - rig.gradient[i] - behind[i]);
    exchanged += std::abs(double{rig.gradient[i]});
  }
  return lost / exchanged;
}

TEST(GTopK, OnlyPutBackConserveLosesNothing) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const double paper = loss(ctx, comm, "paper"), conserve = loss(ctx, comm, "conserve");
      // two ranks prune once, at the root, so no index survives on another branch
      if (comm.size() <= 2) {
        EXPECT_EQ(paper, 0);
      } else if (comm.size() >= 4) {
        EXPECT_GT(paper, 0.01);
      }
      EXPECT_EQ(conserve, 0);
      if (comm.rank() == 0)
        printf("P %2d: of the exchanged mass put_back=paper loses %.3f, conserve %.3f\n",
               comm.size(), paper, conserve);
    });
}

/// A rank that selects twice the entries of a message, in the formats with a scale: the scale is
/// that of the entries that are left.
TEST(GTopK, LosesNothingOfAScaledSelectionThatIsTooLong) {
  constexpr size_t d = 2000, k = 200;
  for (const char* values : {"int8", "int4", "int2", "sign"})
    for (int ranks : {1, 2, 5})
      run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
        Settings settings = with("gtopk.put_back", "conserve");
        settings.set("wire.values", values);
        ExchangeRig rig(ctx, comm, d, "gtopk", settings);
        set_correlated(rig, comm.rank(), 0);
        rig.selected.reserve(2 * k);
        for (size_t i = 0; i < d; ++i) {
          rig.before[i] = rig.residual[i] = rig.gradient[i];
          if (i % 5 != 0) continue;
          rig.selected.push(static_cast<uint32_t>(i), rig.residual[i]);
          rig.residual[i] = 0;
        }
        rig.exchange->run(ctx, comm,
                          {.gradient = rig.sum(),
                           .gradient_control = rig.gradient,
                           .residual = rig.residual,
                           .mine = &rig.selected,
                           .k = k},
                          rig.control);
        EXPECT_EQ(rig.lost(), 0u) << values << " on " << ranks;
      });
}

TEST(GTopK, KeepsMostEntriesOfTheExactTopK) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      constexpr size_t k = 100;
      ExchangeRig tree(ctx, comm, 10'000, "gtopk"), exact(ctx, comm, 10'000, "exact");
      set_correlated(tree, comm.rank(), 0);
      set_correlated(exact, comm.rank(), 0);
      tree.step(k);
      exact.step(k);
      const auto a = tree.kept(), b = exact.kept();
      EXPECT_LE(a.size(), k);
      EXPECT_LE(b.size(), k);
      std::vector<uint32_t> both;
      std::ranges::set_intersection(a, b, std::back_inserter(both));
      const double overlap = static_cast<double>(both.size()) / static_cast<double>(b.size());
      // two ranks merge once: the tree is exact
      EXPECT_GE(overlap, comm.size() <= 2 ? 1.0 : 0.5);
      if (comm.rank() == 0)
        printf("P %2d: %.2f of the exact global top-k are in gTop-k's\n", comm.size(), overlap);
    });
}

/// The mass of other ranks' pruned entries in this rank's residual after eight steps.
double pruned_mass(Context& ctx, Communicator& comm, const char* rotate) {
  Settings settings = with("gtopk.rotate", rotate);
  settings.set("gtopk.put_back", "conserve");
  ExchangeRig rig(ctx, comm, 10'000, "gtopk", settings);
  double mass = 0;
  for (uint64_t step = 0; step < 8; ++step) {
    set_correlated(rig, comm.rank(), step);
    rig.step(100, step);
    for (uint32_t index : rig.selected.index_span()) rig.before[index] = 0;
    for (size_t i = 0; i < rig.before.size(); ++i)
      mass += std::abs(double{rig.residual[i]} - rig.before[i]);
  }
  return mass;
}

TEST(GTopK, ARotatingRootSpreadsResiduals) {
  run_ranks(4, [](Context& ctx, Communicator& comm) {
    // rank 0 merges twice, rank 2 once; ranks 1 and 3 are leaves
    EXPECT_EQ(pruned_mass(ctx, comm, "false") > 0, comm.rank() % 2 == 0);
    EXPECT_GT(pruned_mass(ctx, comm, "true"), 0);
  });
}

TEST(GTopK, SendsTheMessagesAndBytesOfTwoTrees) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      ExchangeRig rig(ctx, comm, 10'000, "gtopk");
      set_correlated(rig, comm.rank(), 0);
      const MessageCounter traffic(comm);
      rig.step(100, 1);
      const auto [bytes, messages] = traffic.sums(ctx, comm);
      const uint64_t expected = 2 * static_cast<uint64_t>(comm.size() - 1);
      EXPECT_EQ(messages, expected);
      EXPECT_EQ(bytes, expected * (16 + 800));
    });
}

}  // namespace
}  // namespace tw
