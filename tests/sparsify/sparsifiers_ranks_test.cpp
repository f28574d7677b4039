// The contract of every registered sparsifier, on any number of ranks. A test runs all variants of
// one sparsifier; the name of the test ends with it.

#include "comm/collectives/collectives.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

/// The longest spans several blocks of every loop of a rank. Many ranks on few cores are slow and
/// do not change that, nor do processes.
std::vector<size_t> lengths(int ranks) {
  if (started_by_mpi() && ranks > 4) return {1, 1000};
  if (started_by_mpi() || ranks > 4) return {1, 4, 1000};
  return {1, 4, 1000, 4097};
}

std::vector<GradientKind> first_of(const std::vector<GradientKind>& kinds) {
  return {kinds.front()};
}

class Sparsifiers : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<Variant> variants_ = variants_of(GetParam());

  /// Runs body on every number of ranks for every variant, length and kind of gradient.
  template <class Body>
  void for_all(const std::vector<GradientKind>& kinds, const Body& body) const {
    for (int ranks : kRankCounts)
      run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
        // the kinds differ in what a rank selects, so many processes run one of them
        const bool many = started_by_mpi() && ranks > 4;
        for (const Variant& variant : variants_)
          for (size_t d : variant.brief ? std::vector<size_t>{100} : lengths(ranks))
            for (const GradientKind& kind : variant.brief || many ? first_of(kinds) : kinds) {
              const testing::ScopedTrace trace(
                  __FILE__, __LINE__, fmt::format("{}, d {}, {}", variant.name, d, kind.name));
              body(ctx, comm, variant, d, kind);
            }
      });
  }
};

/// False on ranks that receive the updated parameters instead of the sum.
bool has_sum(const Communicator& comm, const Variant& variant) {
  const Sparsifier& sparsifier = sparsifiers().find(variant.sparsifier).value;
  return comm.rank() == 0 || !exchanges().find(sparsifier.exchange).value.updates_at_root;
}

/// Without momentum if it comes before the selection: u is then gradient plus residual, as for
/// other sparsifiers.
SgdConfig plain(const std::string& sparsifier, const Variant& variant) {
  SgdConfig config{.sparsifier = sparsifier};
  if (sparsifiers().find(variant.sparsifier).value.momentum_before)
    config.momentum = config.weight_decay = 0;
  return config;
}

std::vector<float> copy(std::span<const float> x) { return {x.begin(), x.end()}; }

bool same_on_all_ranks(Context& ctx, Communicator& comm, std::span<const float> x) {
  std::vector<float> root = copy(x);
  broadcast(ctx, comm, 0, std::as_writable_bytes(std::span(root)));
  return same_bits(root, x);
}

TEST_P(Sparsifiers, SumPlusResidualsEqualsTheInputs) {
  for_all(exact_kinds(), [](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
                            const GradientKind& kind) {
    if (!variant.conserves) return;
    SgdRig rig(ctx, comm, d, plain(variant.sparsifier, variant), variant.settings);
    for (uint64_t step = 0; step < 3; ++step) {
      rig.set_gradients(kind, step);
      std::vector<float> before = copy(rig.arena.gradients());
      for (size_t i = 0; i < rig.sgd->residual().size(); ++i) before[i] += rig.sgd->residual()[i];
      rig.sgd->step({.step = step, .lr = 0, .density = 0.05});
      const std::vector<float> total = summed(ctx, comm, before);
      const std::vector<float> behind = rig.sgd->residual().empty()
                                            ? std::vector<float>(d)
                                            : summed(ctx, comm, rig.sgd->residual());
      if (!has_sum(comm, variant)) continue;
      size_t wrong = 0;
      for (size_t i = 0; i < d; ++i) wrong += rig.arena.gradients()[i] + behind[i] != total[i];
      EXPECT_EQ(wrong, 0u) << "step " << step;
    }
  });
}

TEST_P(Sparsifiers, MatchDenseAtDensityOne) {
  for_all(exact_kinds(), [](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
                            const GradientKind& kind) {
    if (!variant.lossless) return;
    SgdRig dense(ctx, comm, d, plain("dense", variant));
    SgdRig rig(ctx, comm, d, plain(variant.sparsifier, variant), variant.settings);
    for (uint64_t step = 0; step < 2; ++step) {
      dense.step(kind, {.step = step, .density = 1});
      rig.step(kind, {.step = step, .density = 1});
    }
    EXPECT_TRUE(same_bits(rig.arena.values(), dense.arena.values()));
  });
}

TEST_P(Sparsifiers, MatchDenseUpToRoundingAtDensityOne) {
  for_all({rounding_kind()}, [](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
                                const GradientKind& kind) {
    if (!variant.lossless) return;
    SgdRig dense(ctx, comm, d, plain("dense", variant));
    SgdRig rig(ctx, comm, d, plain(variant.sparsifier, variant), variant.settings);
    dense.step(kind, {.density = 1});
    rig.step(kind, {.density = 1});
    if (!has_sum(comm, variant)) return;
    // each of the P - 1 additions of either side rounds by half a unit in the last place
    size_t wrong = 0;
    for (size_t i = 0; i < d; ++i) {
      double magnitudes = 0;
      for (int rank = 0; rank < comm.size(); ++rank)
        magnitudes += std::abs(double{SgdRig::gradient(kind, rank, 0, i)});
      const double difference = double{rig.arena.gradients()[i]} - dense.arena.gradients()[i];
      wrong += !(std::abs(difference) <= 2 * (comm.size() - 1) * 0x1p-24 * magnitudes);
    }
    EXPECT_EQ(wrong, 0u);
  });
}

TEST_P(Sparsifiers, GiveTheSameBitsOnAllRanksAndInARepeat) {
  for_all(all_kinds(), [](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
                          const GradientKind& kind) {
    const SgdConfig config{.sparsifier = variant.sparsifier, .nesterov = true};
    Context two(Device::cpu, 2);
    SgdRig first(ctx, comm, d, config, variant.settings);
    SgdRig again(two, comm, d, config, variant.settings);
    for (uint64_t step = 0; const double density : {0.05, 1.0, 0.05}) {
      first.step(kind, {.step = step, .density = density});
      again.step(kind, {.step = step, .density = density});
      ++step;
    }
    EXPECT_TRUE(same_on_all_ranks(ctx, comm, first.arena.values()));
    EXPECT_TRUE(same_bits(first.arena.values(), again.arena.values()));
    EXPECT_TRUE(same_bits(first.sgd->residual(), again.sgd->residual()));
  });
}

TEST_P(Sparsifiers, GiveTheSameBitsOnAnyNumberOfThreads) {
  // long enough that every parallel loop is split, into parts of unequal length
  constexpr size_t d = 200'003;
  run_ranks(4, [this](Context& ctx, Communicator& comm) {
    std::vector<float> gradients[2] = {std::vector<float>(d), std::vector<float>(d)};
    for (uint64_t step = 0; step < 2; ++step)
      for (size_t i = 0; i < d; ++i)
        gradients[step][i] = SgdRig::gradient(rounding_kind(), comm.rank(), step, i);
    for (const Variant& variant : variants_)
      for (double density : {0.01, 1.0}) {
        std::vector<float> values, residual;
        for (int threads : {1, 2, 3}) {
          Context many(Device::cpu, threads);
          SgdRig rig(many, comm, d, {.sparsifier = variant.sparsifier}, variant.settings);
          for (uint64_t step = 0; step < 2; ++step) {
            std::ranges::copy(gradients[step], rig.arena.gradients().begin());
            rig.sgd->step({.step = step, .density = density});
          }
          if (threads == 1) values = copy(rig.arena.values());
          if (threads == 1) residual = copy(rig.sgd->residual());
          EXPECT_TRUE(same_bits(values, rig.arena.values())) << variant.name << " " << threads;
          EXPECT_TRUE(same_bits(residual, rig.sgd->residual())) << variant.name << " " << threads;
        }
        EXPECT_TRUE(same_on_all_ranks(ctx, comm, values)) << variant.name;
      }
  });
}

TEST_P(Sparsifiers, ReportTheBytesSent) {
  for_all(exact_kinds(), [](Context& ctx, Communicator& comm, const Variant& variant, size_t d,
                            const GradientKind& kind) {
    SgdRig rig(ctx, comm, d, {.sparsifier = variant.sparsifier}, variant.settings);
    const MessageCounter traffic(comm);
    const StepReport report = rig.step(kind, {.density = 0.05});
    const uint64_t counted = traffic.sums(ctx, comm).bytes;
    EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent), counted);
  });
}

TEST_P(Sparsifiers, ReportABadGradientOnEveryRankInTheSameStep) {
  struct Case {
    float bad;
    bool first, last;  // ranks whose gradient it is in
    bool stop;         // in the same step
  };
  std::vector<Case> cases;
  for (float bad : {NAN, INFINITY})
    for (bool stop : {false, true})
      for (const auto& [first, last] : {std::pair{false, true}, {true, false}, {true, true}})
        cases.push_back({bad, first, last, stop});
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const int self = comm.rank(), end = comm.size() - 1;
      for (const Variant& variant : variants_)
        for (double density : {0.05, 1.0})
          for (const auto& [bad, first, last, stop] : cases) {
            SgdRig rig(ctx, comm, 1000, {.sparsifier = variant.sparsifier}, variant.settings);
            rig.set_gradients(exact_kinds().front(), 42);
            const std::vector<float> weights = copy(rig.arena.values());
            if ((first && self == 0) || (last && self == end))
              rig.arena.gradients()[517 + self] = bad;
            const int named = first ? 0 : end;
            EXPECT_EQ(
                fault_of(rig, {.step = 42, .density = density, .stop = stop && self == end / 2}),
                fmt::format("[train] rank {}: gradient of layer1.weight is {} at element {} "
                            "(step 42); a lower learning rate may help",
                            named, bad, 17 + named))
                << variant.name;
            EXPECT_TRUE(same_bits(weights, rig.arena.values())) << variant.name;
          }
    });
}

TEST_P(Sparsifiers, ReportAnOverflowOfTheSum) {
  run_ranks(2, [this](Context& ctx, Communicator& comm) {
    for (const Variant& variant : variants_)
      for (double density : {0.05, 1.0}) {
        SgdRig rig(ctx, comm, 1000, {.sparsifier = variant.sparsifier}, variant.settings);
        if (rig.sgd->residual().empty() || variant.clips()) continue;
        rig.set_gradients(exact_kinds().front(), 0);
        // in a tensor with a residual in every sparsifier, on a rank that always has one
        rig.sgd->residual()[767] = rig.arena.gradients()[767] = comm.rank() == 0 ? -3e38f : 1.0f;
        EXPECT_EQ(fault_of(rig, {.density = density}),
                  "[train] rank 0: gradient of layer2.weight is -inf at element 17 (step 0); a "
                  "lower learning rate may help")
            << variant.name;
      }
  });
}

TEST_P(Sparsifiers, StopAllRanksInTheSameStep) {
  const GradientKind& kind = exact_kinds().front();
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        SgdRig rig(ctx, comm, 1000, {.sparsifier = variant.sparsifier}, variant.settings);
        EXPECT_FALSE(rig.step(kind, {.step = 0, .density = 0.05}).stop) << variant.name;
        const bool mine = comm.rank() == comm.size() / 2;
        EXPECT_TRUE(rig.step(kind, {.step = 1, .density = 0.05, .stop = mine}).stop)
            << variant.name;
      }
    });
}

TEST_P(Sparsifiers, ContinueFromARestoredStateWithTheSameBits) {
  const GradientKind& kind = rounding_kind();
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        const SgdConfig config{.sparsifier = variant.sparsifier};
        SgdRig whole(ctx, comm, 4097, config, variant.settings);
        for (uint64_t step = 0; step < 3; ++step) whole.step(kind, {.step = step, .density = 0.01});

        SgdRig resumed(ctx, comm, 4097, config, variant.settings);
        std::ranges::copy(whole.arena.values(), resumed.arena.values().begin());
        std::ranges::copy(whole.sgd->momentum(), resumed.sgd->momentum().begin());
        std::ranges::copy(whole.sgd->residual(), resumed.sgd->residual().begin());
        std::ranges::copy(whole.sgd->local_momentum(), resumed.sgd->local_momentum().begin());
        const auto from = whole.sgd->states(), to = resumed.sgd->states();
        for (size_t i = 0; i < from.size(); ++i)
          std::ranges::copy(from[i].bytes, to[i].bytes.begin());
        for (uint64_t step = 3; step < 5; ++step) {
          whole.step(kind, {.step = step, .density = 0.01});
          resumed.step(kind, {.step = step, .density = 0.01});
        }
        EXPECT_TRUE(same_bits(whole.arena.values(), resumed.arena.values())) << variant.name;
        EXPECT_TRUE(same_bits(whole.sgd->residual(), resumed.sgd->residual())) << variant.name;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Registered, Sparsifiers, testing::ValuesIn(sparsifiers().names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tw
