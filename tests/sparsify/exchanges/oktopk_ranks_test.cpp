#include "sparsify/exchanges/oktopk_state.h"
#include "tests/support/ranks/exchange_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

/// Bell-shaped gradients, larger in the middle of the vector, with a part that all ranks share.
void set_gradients(ExchangeRig& rig, int rank, uint64_t step) {
  const Philox philox(13, Purpose::test);
  const double d = static_cast<double>(rig.residual.size());
  for (size_t i = 0; i < rig.residual.size(); ++i) {
    const auto common = philox(step << 32 | i), own = philox((step * 64 + rank + 1) << 32 | i, 1);
    const double place = (static_cast<double>(i) - d / 2) / d;
    const float width = static_cast<float>(std::exp(-8 * place * place));
    rig.gradient[i] = width * (normal(common[0], common[1])[0] + normal(own[0], own[1])[0]);
  }
}

TEST(OkTopk, VolumeStaysBelowSixK) {
  constexpr size_t d = 20'000, k = 200;
  for (int ranks : {1, 2, 5, 8, 16})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const uint64_t p = static_cast<uint64_t>(comm.size());
      ExchangeRig rig(ctx, comm, d, "oktopk");
      double ordinary = 0, exact = 0;
      size_t steps = 0, fewest = SIZE_MAX, most = 0;
      for (uint64_t step = 0; step < 96; ++step) {
        set_gradients(rig, comm.rank(), step);
        const MessageCounter traffic(comm);
        rig.step(k, step);
        const uint64_t headers = p * (p - 1) * (8 + 24);
        const double words = static_cast<double>(traffic.sums(ctx, comm).bytes - headers) / 4;
        const size_t kept = rig.kept().size();
        if (step % 32 == 0) {
          exact += words / 3;
          continue;
        }
        // residuals start at zero and at first grow faster than the thresholds adapt
        if (step < 48) continue;
        ordinary += words;
        ++steps;
        fewest = std::min(fewest, kept);
        most = std::max(most, kept);
      }
      ordinary /= static_cast<double>(steps);
      const double bound = 6.0 * k * static_cast<double>(p - 1);
      EXPECT_LE(ordinary, bound);
      if (comm.rank() == 0 && p > 1)
        printf("P %2d: %.2f k (P-1)/P words a rank, an exact step %.2f; %zu .. %zu kept of %zu\n",
               comm.size(), 6 * ordinary / bound, 6 * exact / bound, fewest, most, k);
    });
}

// the entries of each rank are close together and apart from those of other ranks, so most go to
// one owner
TEST(OkTopk, UnevenRegionsNeedNoMoreMessages) {
  constexpr size_t d = 8'000, k = 200;
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      ExchangeRig rig(ctx, comm, d, "oktopk");
      const auto width = d / static_cast<size_t>(comm.size());
      uint64_t messages = 0;
      for (uint64_t step = 0; step < 2; ++step) {
        set_gradients(rig, comm.rank(), step);
        const float scale = step == 0 ? 1.0f : 0.8f;  // residuals have grown by then
        for (size_t i = 0; i < d; ++i)
          rig.gradient[i] *= i / width == static_cast<size_t>(comm.rank()) ? scale : 1e-6f;
        const MessageCounter traffic(comm);
        rig.step(k, step);
        messages = traffic.sums(ctx, comm).messages;
      }
      const int rounds = std::bit_width(static_cast<unsigned>(comm.size() - 1));
      EXPECT_EQ(messages, static_cast<uint64_t>(comm.size() * (comm.size() - 1 + rounds)));
    });
}

TEST(OkTopk, ExactStepsKeepTheExactTopKOfTheSum) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      ExchangeRig rig(ctx, comm, 10'000, "oktopk"), exact(ctx, comm, 10'000, "exact");
      set_gradients(rig, comm.rank(), 0);
      set_gradients(exact, comm.rank(), 0);
      // integers, since the two exchanges add in different orders
      for (size_t i = 0; i < rig.residual.size(); ++i)
        exact.gradient[i] = rig.gradient[i] = std::round(rig.gradient[i] * 1000);
      rig.step(100);
      exact.step(100);
      EXPECT_TRUE(same_bits(rig.sum(), exact.sum()));
      EXPECT_TRUE(same_bits(rig.residual, exact.residual));
    });
}

TEST(OkTopk, ARestoredStateKeepsTheThresholds) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      ExchangeRig whole(ctx, comm, 10'000, "oktopk"), resumed(ctx, comm, 10'000, "oktopk");
      for (uint64_t step = 0; step < 5; ++step) {
        set_gradients(whole, comm.rank(), step);
        whole.step(100, step);
      }
      resumed.residual = whole.residual;
      std::ranges::copy(whole.exchange->state(), resumed.exchange->state().begin());
      for (uint64_t step = 5; step < 8; ++step) {
        set_gradients(whole, comm.rank(), step);
        set_gradients(resumed, comm.rank(), step);
        whole.step(100, step);
        resumed.step(100, step);
        EXPECT_TRUE(same_bits(whole.sum(), resumed.sum()));
        EXPECT_TRUE(same_bits(whole.residual, resumed.residual));
      }
    });
}

TEST(OkTopk, RegionsFollowTheEntries) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < 640; ++i) indices.push_back(10'000 + i);
  OkTopkState state{.knots = piece_borders(indices, 1'000'000)};
  for (int ranks : kRankCounts) {
    EXPECT_EQ(state.border(0, ranks), 0u);
    EXPECT_EQ(state.border(ranks, ranks), 1'000'000u);
    for (int rank = 1; rank < ranks; ++rank)
      EXPECT_NEAR(state.border(rank, ranks), 10'000 + 640 * rank / ranks, ranks > 5 ? 10 : 5);
  }
  state.knots = piece_borders({}, 6400);
  EXPECT_EQ(state.border(1, 2), 3200u);
  EXPECT_EQ(state.border(1, 3), 2133u);
}

TEST(ThresholdTracker, AnExactStepFollowsFewerSumsThanHalfOrMoreThanTwiceK) {
  constexpr size_t k = 100, d = 10'000;
  for (const auto& [count, exact] : {std::pair{49, true}, {50, false}, {200, false}, {201, true}}) {
    OkTopkState state{.knots = piece_borders({}, d)};
    ThresholdTracker tracker(state, 32);
    SparseVector sums;
    sums.reserve(k);
    sums.count = k;
    std::ranges::fill(sums.values, 1.0f);
    tracker.begin_step(0, k, d);
    tracker.update_global(sums, k);
    tracker.begin_step(1, k, d);
    EXPECT_FALSE(tracker.exact()) << "k sums";
    sums.count = static_cast<size_t>(count);
    tracker.update_global(sums, k);
    tracker.begin_step(2, k, d);
    EXPECT_EQ(tracker.exact(), exact) << count << " sums";
  }
}

TEST(ThresholdTracker, AnExactSelectionFollowsFewerThanHalfOrMoreThanThreeHalvesOfK) {
  constexpr size_t k = 100;
  for (const auto& [count, exact] : {std::pair{49, true}, {50, false}, {150, false}, {151, true}}) {
    OkTopkState state;
    state.local = 1;
    SparseVector selected;
    selected.count = static_cast<size_t>(count);
    ThresholdTracker(state, 32).update_local(selected, k);
    EXPECT_EQ(state.local == 0, exact) << count << " selected";
  }
}

TEST(ThresholdTracker, MovesAThresholdWhenTheCountLeavesItsRange) {
  EXPECT_EQ(nudged(1, 100, 100, 2.0 / 3, 1.25, 1.012f), 1);
  EXPECT_EQ(nudged(1, 126, 100, 2.0 / 3, 1.25, 1.012f), 1.012f);
  EXPECT_EQ(nudged(1, 66, 100, 2.0 / 3, 1.25, 1.012f), 1 / 1.012f);
}

}  // namespace
}  // namespace tw
