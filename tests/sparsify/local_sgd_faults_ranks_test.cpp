// Local SGD: NaNs and requests to stop between two exchanges, and a state restored there.

#include "tests/support/ranks/local_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

SgdConfig local_config(const Variant& variant) {
  return {.sparsifier = variant.sparsifier, .local_steps = 4, .outer_momentum = 0.5};
}

/// Every sparsifier with its defaults, but those that update the parameters on rank 0 alone.
std::vector<Variant> standard_variants() {
  std::vector<Variant> all = variants();
  std::erase_if(all, [](const Variant& variant) {
    const Sparsifier& sparsifier = sparsifiers().find(variant.sparsifier).value;
    return variant.name != variant.sparsifier ||
           exchanges().find(sparsifier.exchange).value.updates_at_root;
  });
  return all;
}

TEST(LocalSgd, ReportsTheFirstBadGradientOfARoundOnEveryRankAtTheExchange) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const int finder = comm.size() - 1;
      for (const Variant& variant : standard_variants())
        for (const float bad : {NAN, -INFINITY})
          for (const uint64_t when : {4, 5, 7}) {
            LocalRig rig(ctx, comm, local_config(variant), variant.settings);
            for (uint64_t step = 0; step < 8; ++step) {
              const std::span<float> g = rig.arena.gradients();
              for (size_t i = 0; i < g.size(); ++i)
                g[i] = LocalRig::gradient(comm.rank(), step, i, rig.arena.values()[i]);
              // one value is bad at first; then all are, as after an update with it
              if (comm.rank() == finder && step == when) g[517] = bad;
              if (comm.rank() == finder && step > when) std::ranges::fill(g, NAN);
              EXPECT_EQ(
                  fault_of(rig, {.step = step, .lr = 0.01, .density = 0.05}),
                  step < 7
                      ? "none"
                      : fmt::format("[train] rank {}: gradient of layer1.weight is {} "
                                    "at element 17 (steps 4 to 7); a lower learning rate may help",
                                    finder, bad))
                  << variant.name;
            }
          }
    });
}

TEST(LocalSgd, AllRanksStopAtTheEndOfTheRound) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : standard_variants())
        for (const uint64_t when : {4, 6, 7}) {
          LocalRig rig(ctx, comm, local_config(variant), variant.settings);
          for (uint64_t step = 0; step < 12; ++step) {
            const bool mine = step == when && comm.rank() == comm.size() / 2;
            const StepReport report =
                rig.step({.step = step, .lr = 0.01, .density = 0.05, .stop = mine});
            EXPECT_EQ(report.stop, step == 7) << variant.name << ", step " << step;
          }
        }
    });
}

TEST(LocalSgd, ContinuesWithinARoundFromARestoredStateWithTheSameBits) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : standard_variants())
        for (const uint64_t saved : {5, 7, 8}) {
          LocalRig whole(ctx, comm, local_config(variant), variant.settings);
          for (uint64_t step = 0; step < saved; ++step)
            whole.step({.step = step, .lr = 0.01, .density = 0.05});
          LocalRig resumed(ctx, comm, local_config(variant), variant.settings);
          copy_state(whole.arena, *whole.sgd, resumed.arena, *resumed.sgd);
          EXPECT_EQ(resumed.sgd->steps_in_round(), saved % 4);
          for (uint64_t step = saved; step < 14; ++step)
            for (LocalRig* rig : {&whole, &resumed})
              rig->step({.step = step, .lr = 0.01, .density = 0.05});
          EXPECT_TRUE(same_bits(whole.arena.values(), resumed.arena.values())) << variant.name;
          EXPECT_TRUE(same_bits(whole.sgd->residual(), resumed.sgd->residual())) << variant.name;
        }
    });
}

TEST(LocalSgd, ARestoredStateKeepsABadGradientForItsReport) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    const Variant variant{.sparsifier = "topk"};
    LocalRig first(ctx, comm, local_config(variant));
    std::ranges::fill(first.arena.gradients(), 1.0f);
    if (comm.rank() == 1) first.arena.gradients()[3] = INFINITY;
    first.sgd->step({.step = 0, .density = 0.05});
    LocalRig resumed(ctx, comm, local_config(variant));
    copy_state(first.arena, *first.sgd, resumed.arena, *resumed.sgd);
    std::ranges::fill(resumed.arena.gradients(), 1.0f);
    EXPECT_EQ(fault_of(resumed, {.step = 1, .density = 0.05, .last = true}),
              "[train] rank 1: gradient of layer0.weight is inf at element 3 (steps 0 to 1); a "
              "lower learning rate may help");
  });
}

}  // namespace
}  // namespace tw
