// Local SGD compared with its formula, with synchronous SGD, and with every sparsifier.

#include "tests/support/error_text.h"
#include "tests/support/ranks/local_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

/// All variants but those that update the parameters on rank 0 alone.
std::vector<Variant> exchanging_variants() {
  std::vector<Variant> all = variants();
  std::erase_if(all, [](const Variant& variant) {
    const Sparsifier& sparsifier = sparsifiers().find(variant.sparsifier).value;
    return exchanges().find(sparsifier.exchange).value.updates_at_root;
  });
  return all;
}

/// The parameters of all ranks, their local momenta and the outer momentum, by plain loops.
class LocalReference {
 public:
  LocalReference(const SgdConfig& config, int ranks, std::span<const float> w)
      : config_(config),
        own(static_cast<size_t>(ranks), {w.begin(), w.end()}),
        own_momentum_(own.size(), std::vector<double>(w.size())),
        anchor_(w.begin(), w.end()),
        momentum_(w.size()) {}

  void step(uint64_t step, double lr) {
    for (size_t r = 0; r < own.size(); ++r)
      for (size_t i = 0; i < anchor_.size(); ++i) {
        double& w = own[r][i];
        double& m = own_momentum_[r][i];
        const bool decay = i < anchor_.size() / 2 || i >= anchor_.size() / 2 + anchor_.size() / 4;
        const double g = LocalRig::gradient(static_cast<int>(r), step, i, static_cast<float>(w)) +
                         (decay ? config_.weight_decay * w : 0);
        m = config_.momentum * m + g;
        w -= lr * (config_.nesterov ? g + config_.momentum * m : m);
      }
  }
  void exchange() {
    for (size_t i = 0; i < anchor_.size(); ++i) {
      double mean = 0;
      for (const auto& w : own) mean += (anchor_[i] - w[i]) / static_cast<double>(own.size());
      momentum_[i] = config_.outer_momentum * momentum_[i] + mean;
      anchor_[i] -= config_.outer_lr * (mean + config_.outer_momentum * momentum_[i]);
      for (auto& w : own) w[i] = anchor_[i];
    }
  }

 private:
  SgdConfig config_;

 public:
  std::vector<std::vector<double>> own;  // the parameters of each rank

 private:
  std::vector<std::vector<double>> own_momentum_;
  std::vector<double> anchor_, momentum_;
};

TEST(LocalSgd, MatchesItsFormula) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const bool nesterov : {false, true})
        for (const auto& [outer_lr, outer_momentum] : {std::pair{1.0, 0.0}, {0.7, 0.9}}) {
          const SgdConfig config{.weight_decay = 0.01,
                                 .nesterov = nesterov,
                                 .local_steps = 4,
                                 .outer_lr = outer_lr,
                                 .outer_momentum = outer_momentum};
          LocalRig rig(ctx, comm, config);
          LocalReference reference(config, comm.size(), rig.arena.values());
          // rounds of four, two (cut short by the last step of an epoch), and four steps
          for (uint64_t step = 0; step < 12; ++step) {
            const double lr = 0.02 / static_cast<double>(1 + step);
            rig.step({.step = step, .lr = lr, .last = step == 5});
            reference.step(step, lr);
            if (step == 3 || step == 5 || step == 9) reference.exchange();
            const auto& expected = reference.own[static_cast<size_t>(comm.rank())];
            double worst = 0;
            for (size_t i = 0; i < LocalRig::kLength; ++i)
              worst = std::max(worst, std::abs(rig.arena.values()[i] - expected[i]));
            EXPECT_LT(worst, 1e-5) << "step " << step << ", outer momentum " << outer_momentum;
          }
        }
    });
}

TEST(LocalSgd, OneLocalStepIsSynchronousSgd) {
  for (int ranks : {1, 3})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const double momentum : {0.0, 0.9}) {
        SgdConfig config{.momentum = momentum, .weight_decay = 0.01};
        SgdRig sync(ctx, comm, LocalRig::kLength, config);
        config.local_steps = 1;
        LocalRig local(ctx, comm, config);
        for (uint64_t step = 0; step < 20; ++step) {
          for (size_t i = 0; i < LocalRig::kLength; ++i)
            sync.arena.gradients()[i] =
                LocalRig::gradient(comm.rank(), step, i, sync.arena.values()[i]);
          sync.sgd->step({.step = step, .lr = 0.05});
          local.step({.step = step, .lr = 0.05});
        }
        double difference = 0, norm = 0;
        for (size_t i = 0; i < LocalRig::kLength; ++i) {
          const double a = sync.arena.values()[i], b = local.arena.values()[i];
          difference += (a - b) * (a - b);
          norm += a * a;
        }
        EXPECT_LT(std::sqrt(difference / norm), 1e-6) << momentum;
      }
    });
}

TEST(LocalSgd, ParametersAreTheSameAfterEachRoundOnly) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : exchanging_variants()) {
        const SgdConfig config{.sparsifier = variant.sparsifier,
                               .local_steps = 4,
                               .outer_lr = 0.7,
                               .outer_momentum = 0.9};
        LocalRig rig(ctx, comm, config, variant.settings);
        for (uint64_t step = 0; step < 10; ++step) {
          rig.step({.step = step, .lr = 0.01, .density = 0.05, .last = step == 9});
          const bool ended = step == 3 || step == 7 || step == 9;
          EXPECT_EQ(same_on_all(ctx, comm, rig.arena.values()), ended || comm.size() == 1)
              << variant.name << ", step " << step;
        }
      }
    });
}

TEST(LocalSgd, SumPlusResidualsEqualsTheDifferencesPlusDecayedResiduals) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const double beta : {1.0, 0.5}) {
        const SgdConfig config{.sparsifier = "topk",
                               .momentum = 0,
                               .weight_decay = 0,
                               .residual_decay = beta,
                               .local_steps = 4,
                               .outer_lr = 0};  // the anchor stays an integer
        LocalRig rig(ctx, comm, config);
        // beta e + D: integers, or halves and quarters of them
        std::vector<float> input(LocalRig::kLength);
        for (uint64_t step = 0; step < 12; ++step) {
          if (step % 4 == 0)
            for (size_t i = 0; i < LocalRig::kLength; ++i)
              input[i] = static_cast<float>(beta) * rig.sgd->residual()[i];
          for (size_t i = 0; i < LocalRig::kLength; ++i)
            input[i] += rig.arena.gradients()[i] =
                SgdRig::gradient(exact_kinds()[0], comm.rank(), step, i);
          rig.sgd->step({.step = step, .lr = 1, .density = 0.05});
          if (step % 4 != 3) continue;
          const auto total = summed(ctx, comm, input);
          const auto behind = summed(ctx, comm, rig.sgd->residual());
          size_t wrong = 0;
          for (size_t i = 0; i < LocalRig::kLength; ++i)
            wrong += rig.arena.gradients()[i] + behind[i] != total[i];
          EXPECT_EQ(wrong, 0u) << "step " << step << ", beta " << beta;
        }
      }
    });
}

TEST(LocalSgd, SendsTheEstimatedBytesInExchangesAndNoneBetween) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* name : {"dense", "topk"}) {
        const SgdConfig config{.sparsifier = name, .local_steps = 3};
        LocalRig rig(ctx, comm, config);
        const uint64_t each =
            SgdPlan(rig.arena, config, default_settings()).bytes_sent(comm.size(), 0.05);
        for (uint64_t step = 0; step < 6; ++step) {
          const StepReport report = rig.step({.step = step, .lr = 0.01, .density = 0.05});
          const bool ends = step % 3 == 2;
          EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent), ends ? each : 0) << name;
          EXPECT_EQ(report.k > 0, ends) << name;
          EXPECT_EQ(report.nnz > 0, ends) << name;
        }
      }
    });
}

/// Exchanges that take turns count exchanges, not local steps: with as many local steps as ranks,
/// the leader of scalecom would else always be the same.
TEST(LocalSgd, ExchangesTakeTurns) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    LocalRig rig(ctx, comm, {.sparsifier = "scalecom", .local_steps = 2});
    for (uint64_t step = 0; step < 8; ++step) {
      const StepReport report = rig.step({.step = step, .lr = 0.01, .density = 0.05});
      if (step % 2 == 0) continue;
      // only the leader sends indices
      const uint64_t others = sum_over_ranks(ctx, comm, report.bytes_sent) - report.bytes_sent;
      EXPECT_EQ(report.bytes_sent > others, comm.rank() == static_cast<int>(step / 2 % 2)) << step;
    }
  });
}

TEST(LocalSgd, ThePlanCountsItsVectors) {
  const SgdConfig sync{.sparsifier = "topk"};
  ParameterArena arena;
  arena.add({.name = "w", .shape = {1000}});
  const auto vectors = [&](const SgdConfig& config) {
    return SgdPlan(arena, config, default_settings()).optimizer_bytes /
           (arena.size() * sizeof(float));
  };
  EXPECT_EQ(vectors(sync), 2u);  // momentum, residual
  // anchor, momentum of the local steps, residual; and the outer momentum
  EXPECT_EQ(vectors({.sparsifier = "topk", .local_steps = 2}), 3u);
  EXPECT_EQ(vectors({.sparsifier = "topk", .local_steps = 2, .outer_momentum = 0.9}), 4u);
  EXPECT_EQ(vectors({.sparsifier = "topk", .momentum = 0, .local_steps = 2}), 2u);
}

TEST(LocalSgd, RejectsPartsThatDoNotFit) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    const auto error = [&](const SgdConfig& config) {
      return test::error_text<UserError>([&] { LocalRig(ctx, comm, config); });
    };
    EXPECT_EQ(error({.sparsifier = "bsp", .local_steps = 2}),
              "[train] exchange root updates the parameters on rank 0 alone; it excludes "
              "local-steps");
    EXPECT_EQ(error({.scope = Scope::layer, .overlap = true, .local_steps = 2}),
              "[train] overlap exchanges gradients during backward; local-steps exchanges none");
  });
}

}  // namespace
}  // namespace tw
