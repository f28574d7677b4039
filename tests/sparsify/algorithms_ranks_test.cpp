// What every registered algorithm owes, on any number of ranks.

#include "comm/collectives.h"
#include "tests/support/ranks.h"
#include "tests/support/sgd_rig.h"

namespace tw {
namespace {

constexpr size_t kLengths[] = {1, 4, 1000, 4097};

/// Runs body on every number of ranks for every variant, length and kind of gradient.
template <class Body>
void for_all(const Body& body) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants())
        for (size_t d : kLengths)
          for (const GradientKind& kind : gradient_kinds()) {
            const testing::ScopedTrace trace(
                __FILE__, __LINE__, fmt::format("{}, d {}, {}", variant.name, d, kind.name));
            body(ctx, comm, variant, d, kind);
          }
    });
}

std::vector<float> copy(std::span<const float> x) { return {x.begin(), x.end()}; }

bool same_on_all_ranks(Context& ctx, Communicator& comm, std::span<const float> x) {
  std::vector<float> root = copy(x);
  broadcast(ctx, comm, 0, std::as_writable_bytes(std::span(root)));
  return same_bits(root, x);
}

TEST(Algorithms, WhatIsSentAndWhatStaysBehindIsWhatWasThere) {
  for_all([](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
             const GradientKind& kind) {
    SgdRig rig(ctx, comm, d, {.sparsifier = variant.algorithm}, variant.settings);
    for (uint64_t step = 0; step < 3; ++step) {
      rig.set_gradients(kind, step);
      std::vector<float> before = copy(rig.arena.gradients());
      for (size_t i = 0; i < rig.sgd->residual().size(); ++i) before[i] += rig.sgd->residual()[i];
      rig.sgd->step({.step = step, .lr = 0, .density = 0.05});
      const std::vector<float> total = summed(ctx, comm, before);
      const std::vector<float> behind = rig.sgd->residual().empty()
                                            ? std::vector<float>(d)
                                            : summed(ctx, comm, rig.sgd->residual());
      size_t wrong = 0;
      for (size_t i = 0; i < d; ++i) wrong += rig.arena.gradients()[i] + behind[i] != total[i];
      EXPECT_EQ(wrong, 0u) << "step " << step;
    }
  });
}

TEST(Algorithms, DensityOneIsDense) {
  for_all([](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
             const GradientKind& kind) {
    SgdRig dense(ctx, comm, d, {.sparsifier = "dense"});
    SgdRig rig(ctx, comm, d, {.sparsifier = variant.algorithm}, variant.settings);
    for (uint64_t step = 0; step < 2; ++step) {
      dense.step(kind, {.step = step, .density = 1});
      rig.step(kind, {.step = step, .density = 1});
    }
    EXPECT_TRUE(same_bits(rig.arena.values(), dense.arena.values()));
  });
}

TEST(Algorithms, RanksEndBitIdenticalAndRunsRepeat) {
  for_all([](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
             const GradientKind& kind) {
    const SgdConfig config{.sparsifier = variant.algorithm, .nesterov = true};
    Context two(Device::cpu, 2);
    SgdRig first(ctx, comm, d, config, variant.settings);
    SgdRig again(two, comm, d, config, variant.settings);
    for (uint64_t step = 0; step < 3; ++step) {
      first.step(kind, {.step = step, .density = 0.05});
      again.step(kind, {.step = step, .density = 0.05});
    }
    EXPECT_TRUE(same_on_all_ranks(ctx, comm, first.arena.values()));
    EXPECT_TRUE(same_bits(first.arena.values(), again.arena.values()));
    EXPECT_TRUE(same_bits(first.sgd->residual(), again.sgd->residual()));
  });
}

TEST(Algorithms, BytesAreAsClaimed) {
  for_all([](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
             const GradientKind& kind) {
    const Algorithm& algorithm = algorithms().find(variant.algorithm).factory;
    const auto exchange = exchanges().find(algorithm.exchange).factory(variant.settings);
    SgdRig rig(ctx, comm, d, {.sparsifier = variant.algorithm}, variant.settings);
    const Traffic traffic(comm);
    const StepReport report = rig.step(kind, {.density = 0.05});
    const uint64_t counted = traffic.sums(ctx, comm).bytes;
    const uint64_t entries = sum_over_ranks(ctx, comm, report.nnz);
    EXPECT_EQ(counted, exchange->wire_bytes(comm.size(), d, entries));
    EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent), counted);
  });
}

TEST(Algorithms, BadGradientStopsEveryRankInTheSameStep) {
  const GradientKind& kind = gradient_kinds().front();
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const int culprit = comm.size() - 1;
      for (const Variant& variant : variants())
        for (double density : {0.05, 1.0}) {
          SgdRig rig(ctx, comm, 1000, {.sparsifier = variant.algorithm}, variant.settings);
          rig.step(kind, {.step = 41, .density = density});
          rig.set_gradients(kind, 42);
          const std::vector<float> weights = copy(rig.arena.values());
          if (comm.rank() == culprit) rig.arena.gradients()[517] = NAN;
          std::string text;
          try {
            rig.sgd->step({.step = 42, .density = density});
          } catch (const Fault& fault) {
            text = fault.what();
          }
          EXPECT_EQ(text, fmt::format("[train] rank {}: gradient of layer1.weight is nan at "
                                      "element 17 (step 42)",
                                      culprit))
              << variant.name;
          EXPECT_TRUE(same_bits(weights, rig.arena.values())) << variant.name;
        }
    });
}

TEST(Algorithms, OneRanksStopReachesAllInTheSameStep) {
  const GradientKind& kind = gradient_kinds().front();
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants()) {
        SgdRig rig(ctx, comm, 1000, {.sparsifier = variant.algorithm}, variant.settings);
        EXPECT_FALSE(rig.step(kind, {.step = 0, .density = 0.05}).stop) << variant.name;
        const bool mine = comm.rank() == comm.size() / 2;
        EXPECT_TRUE(rig.step(kind, {.step = 1, .density = 0.05, .stop = mine}).stop)
            << variant.name;
      }
    });
}

TEST(Algorithms, RestoredStateContinuesAsIfNeverStopped) {
  const GradientKind& kind = gradient_kinds()[1];
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants()) {
        const SgdConfig config{.sparsifier = variant.algorithm};
        SgdRig whole(ctx, comm, 4097, config, variant.settings);
        for (uint64_t step = 0; step < 3; ++step) whole.step(kind, {.step = step, .density = 0.01});

        SgdRig resumed(ctx, comm, 4097, config, variant.settings);
        std::ranges::copy(whole.arena.values(), resumed.arena.values().begin());
        std::ranges::copy(whole.sgd->momentum(), resumed.sgd->momentum().begin());
        std::ranges::copy(whole.sgd->residual(), resumed.sgd->residual().begin());
        for (uint64_t step = 3; step < 5; ++step) {
          whole.step(kind, {.step = step, .density = 0.01});
          resumed.step(kind, {.step = step, .density = 0.01});
        }
        EXPECT_TRUE(same_bits(whole.arena.values(), resumed.arena.values())) << variant.name;
        EXPECT_TRUE(same_bits(whole.sgd->residual(), resumed.sgd->residual())) << variant.name;
      }
    });
}

}  // namespace
}  // namespace tw
