// EF21: the ranks' estimates and their common sum, whatever the selector.
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

constexpr size_t kEstimated = 1000;  // elements

/// The variants whose exchange EF21 admits, without momentum before the selection.
std::vector<Variant> estimating() {
  std::vector<Variant> all = variants();
  std::erase_if(all, [](const Variant& variant) {
    const Sparsifier& parts = sparsifiers().find(variant.sparsifier).value;
    const SelectorEntry* selector =
        parts.selector.empty() ? nullptr : &selectors().find(parts.selector).value;
    return selector == nullptr || !variant.conserves ||
           selector->shared_indices(variant.settings) || parts.momentum_before ||
           !exchanges().find(parts.exchange).value.adds_what_is_sent;
  });
  return all;
}

SgdConfig with_ef21(const std::string& sparsifier) {
  return {.sparsifier = sparsifier, .momentum = 0, .weight_decay = 0, .ef21 = true};
}

TEST(Ef21, TheSumOfTheEstimatesIsKnownToAllRanks) {
  for (int ranks : {1, 3, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : estimating())
        for (const GradientKind& kind : {exact_kinds()[0], exact_kinds()[1]}) {
          SgdRig rig(ctx, comm, kEstimated, with_ef21(variant.sparsifier), variant.settings);
          for (uint64_t step = 0; const double density : {0.05, 1.0, 0.05, 0.05}) {
            rig.set_gradients(kind, step);
            rig.sgd->step({.step = step++, .lr = 0, .density = density});
            // the residual of a rank is minus its estimate
            const std::vector<float> minus = summed(ctx, comm, rig.sgd->residual());
            size_t wrong = 0;
            for (size_t i = 0; i < kEstimated; ++i)
              wrong += rig.arena.gradients()[i] + minus[i] != 0 ||
                       rig.sgd->estimates()[i] != rig.arena.gradients()[i];
            EXPECT_EQ(wrong, 0u) << variant.name << ", " << kind.name << ", step " << step;
          }
        }
    });
}

TEST(Ef21, SendsWhatTheEstimateLacksMost) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    constexpr size_t k = 50;
    const GradientKind& kind = exact_kinds()[1];
    SgdRig rig(ctx, comm, kEstimated, with_ef21(kTopk));
    const std::vector<float> start(rig.arena.values().begin(), rig.arena.values().end());
    std::vector<std::vector<float>> estimates(3, std::vector<float>(kEstimated));
    std::vector<double> moved(kEstimated);
    for (uint64_t step = 0; step < 4; ++step) {
      for (int rank = 0; rank < 3; ++rank) {
        std::vector<float> lacking(kEstimated);
        for (size_t i = 0; i < kEstimated; ++i)
          lacking[i] = SgdRig::gradient(kind, rank, step, i) - estimates[rank][i];
        for (const uint32_t i : sorted_top(lacking, k)) estimates[rank][i] += lacking[i];
        for (size_t i = 0; i < kEstimated; ++i) moved[i] += estimates[rank][i] / 3.0;
      }
      rig.step(kind, {.step = step, .lr = 1, .density = 0.05});
    }
    for (size_t i = 0; i < kEstimated; ++i) {
      EXPECT_EQ(rig.sgd->residual()[i], -estimates[comm.rank()][i]);
      EXPECT_NEAR(start[i] - rig.arena.values()[i], moved[i], 1e-6 * 4e4);
    }
  });
}

TEST(Ef21, OfConstantGradientsTheMeanIsFoundAndStays) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kEstimated, with_ef21(kTopk));
    std::vector<float> total(kEstimated);
    for (size_t i = 0; i < kEstimated; ++i)
      for (int rank = 0; rank < 2; ++rank)
        total[i] += SgdRig::gradient(exact_kinds()[1], rank, 0, i);
    StepReport report;
    for (uint64_t step = 0; step < 11; ++step) {
      rig.set_gradients(exact_kinds()[1], 0);
      report = rig.sgd->step({.step = step, .lr = 0, .density = 0.1});
    }
    EXPECT_TRUE(same_bits(rig.arena.gradients(), total));
    EXPECT_EQ(report.nnz, 0u);
    EXPECT_EQ(summed(ctx, comm, std::vector<float>{static_cast<float>(report.nnz)})[0], 0);
  });
}

TEST(Ef21, BucketsAndOverlapSelectLikeLayers) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    std::vector<std::unique_ptr<SgdRig>> rigs;
    for (const size_t bytes : {size_t{0}, size_t{1} << 20})
      for (const bool overlap : {false, true}) {
        SgdConfig config = with_ef21(kTopk);
        config.scope = Scope::layer;
        config.bucket_bytes = bytes;
        config.overlap = overlap;
        rigs.push_back(std::make_unique<SgdRig>(ctx, comm, kEstimated, config));
        for (uint64_t step = 0; step < 3; ++step)
          rigs.back()->step(rounding_kind(), {.step = step, .density = 0.05});
        EXPECT_TRUE(same_bits(rigs.back()->arena.values(), rigs.front()->arena.values()));
        EXPECT_TRUE(same_bits(rigs.back()->sgd->residual(), rigs.front()->sgd->residual()));
      }
  });
}

TEST(Ef21, TensorsThatAreSentWholeHaveNoEstimate) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    SgdConfig config = with_ef21("dgc");  // sums tensors of one dimension whole
    config.momentum_before = false;
    SgdRig rig(ctx, comm, kEstimated, config);
    const Parameter& whole = rig.arena.parameters()[1];
    const std::span<float> residual = whole.in(rig.sgd->residual());
    for (uint64_t step = 0; step < 3; ++step) {
      rig.step(exact_kinds()[1], {.step = step, .lr = 0, .density = 0.05});
      EXPECT_EQ(std::ranges::count(residual, 0), whole.shape.numel());
    }
    EXPECT_FALSE(rig.sgd->has_unreachable_residual());
    std::ranges::fill(residual, static_cast<float>(comm.rank()));  // as another method leaves it
    rig.sgd->adopt_mean_residual();
    EXPECT_EQ(std::ranges::count(residual, 0), whole.shape.numel());
  });
}

TEST(Ef21, OnOtherRanksTheSumIsThatOfTheMeansOfTheEstimates) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      SgdRig rig(ctx, comm, kEstimated, with_ef21(kTopk));
      // as a resume leaves it: each rank has the mean, all the sum over other ranks
      for (size_t i = 0; i < kEstimated; ++i) {
        rig.sgd->residual()[i] = static_cast<float>(i % 7) - 3;
        rig.sgd->estimates()[i] = 99;
      }
      rig.sgd->adopt_mean_residual();
      rig.set_gradients(exact_kinds()[0], 0);
      rig.sgd->step({.lr = 0, .density = 0.05});
      const std::vector<float> minus = summed(ctx, comm, rig.sgd->residual());
      size_t wrong = 0;
      for (size_t i = 0; i < kEstimated; ++i) wrong += rig.arena.gradients()[i] + minus[i] != 0;
      EXPECT_EQ(wrong, 0u);
    });
}

TEST(Ef21, TakesTwoMoreVectors) {
  Context ctx;
  ParameterArena arena;
  arena.add({.name = "w", .shape = {kEstimated}});
  const auto bytes = [&](bool ef21) {
    return SgdPlan(arena, {.sparsifier = kTopk, .ef21 = ef21}, default_settings()).optimizer_bytes;
  };
  EXPECT_EQ(bytes(true) - bytes(false), 2 * kEstimated * sizeof(float));
}

TEST(Ef21, RefusesWhatWouldPartTheSumFromTheEstimates) {
  const auto error = [](const SgdConfig& config) {
    return test::error_text<UserError>([&] { resolve_sparsifier(config, default_settings()); });
  };
  for (const char* sparsifier : {"dense", "powersgd", "hierarchical", "gtopk", "oktopk", "exact"})
    EXPECT_NE(error({.sparsifier = sparsifier, .ef21 = true}).find("ef21 needs an exchange that"),
              std::string::npos)
        << sparsifier;
  EXPECT_NE(error({.sparsifier = "dgc", .ef21 = true}).find("excludes momentum correction"),
            std::string::npos);
  EXPECT_NE(error({.sparsifier = "topk", .ef21 = true, .local_steps = 4}).find("local-steps"),
            std::string::npos);
  EXPECT_NE(error({.sparsifier = "topk", .error_feedback = false, .ef21 = true})
                .find("takes the place of error feedback"),
            std::string::npos);
  EXPECT_NE(error({.sparsifier = "topk", .residual_decay = 0.5, .ef21 = true})
                .find("takes the place of error feedback"),
            std::string::npos);
}

}  // namespace
}  // namespace tw
