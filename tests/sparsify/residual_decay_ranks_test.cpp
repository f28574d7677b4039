// Residual decay: u = g + beta e, for every sparsifier that keeps a residual.
#include <optional>

#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

constexpr size_t kDecayed = 1000;  // elements
constexpr double kDecayedDensity = 0.05;

std::vector<std::string> with_residual() {
  std::vector<std::string> names = sparsifiers().names();
  std::erase_if(names, [](const std::string& name) {
    return !keeps_residual(sparsifiers().find(name).value);
  });
  return names;
}

class ResidualDecay : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<Variant> variants_ = variants_of(GetParam());
};

/// Without momentum before the selection, which would make u the velocity plus the residual.
SgdConfig decaying(const Variant& variant, double beta) {
  SgdConfig config{.sparsifier = variant.sparsifier, .residual_decay = beta};
  if (sparsifiers().find(variant.sparsifier).value.momentum_before)
    config.momentum = config.weight_decay = 0;
  return config;
}

/// How far the sum plus the residuals may be from the inputs, as a part of the largest input; empty
/// for variants that lose more than rounding errors.
std::optional<double> rounding_of(const Variant& variant) {
  if (variant.conserves) return 0;
  if (compresses(variant) && variant.settings.text("allreduce.values") == "f32") return 1e-5;
  return std::nullopt;
}

TEST_P(ResidualDecay, SumPlusResidualsEqualsGradientsPlusDecayedResiduals) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        const std::optional<double> rounding = rounding_of(variant);
        if (!rounding) continue;
        // integers and a beta of one half: all sums of entries are exact
        for (const GradientKind& kind : {exact_kinds()[0], exact_kinds()[1]}) {
          SgdRig rig(ctx, comm, kDecayed, decaying(variant, 0.5), variant.settings);
          for (uint64_t step = 0; step < 3; ++step) {
            rig.set_gradients(kind, step);
            std::vector<float> before(rig.sgd->residual().begin(), rig.sgd->residual().end());
            for (size_t i = 0; i < kDecayed; ++i)
              before[i] = rig.arena.gradients()[i] + 0.5f * before[i];
            rig.sgd->step({.step = step, .lr = 0, .density = kDecayedDensity});
            const std::vector<float> total = summed(ctx, comm, before);
            const std::vector<float> behind = summed(ctx, comm, rig.sgd->residual());
            double largest = 0, error = 0;
            for (size_t i = 0; i < kDecayed; ++i) {
              largest = std::max(largest, std::abs(double{total[i]}));
              error = std::max(error,
                               std::abs(double{rig.arena.gradients()[i]} + behind[i] - total[i]));
            }
            EXPECT_LE(error, *rounding * largest)
                << variant.name << ", " << kind.name << ", step " << step;
          }
        }
      }
    });
}

TEST_P(ResidualDecay, AtZeroGivesTheBitsOfNoErrorFeedback) {
  for (int ranks : {1, 3, 4})
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        SgdRig forgets(ctx, comm, kDecayed, decaying(variant, 0), variant.settings);
        SgdConfig config = decaying(variant, 1);
        config.error_feedback = false;
        SgdRig drops(ctx, comm, kDecayed, config, variant.settings);
        for (uint64_t step = 0; step < 3; ++step) {
          forgets.step(rounding_kind(), {.step = step, .density = kDecayedDensity});
          drops.step(rounding_kind(), {.step = step, .density = kDecayedDensity});
        }
        EXPECT_TRUE(same_bits(forgets.arena.values(), drops.arena.values())) << variant.name;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Registered, ResidualDecay, testing::ValuesIn(with_residual()),
                         [](const auto& test) { return test.param; });

TEST(ResidualDecayOptions, TheVelocityOfMomentumCorrectionDecays) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    for (const char* masking : {"true", "false"}) {
      Settings settings = default_settings();
      settings.set("momentum_correction.masking", masking);
      const SgdConfig config{.sparsifier = "topk",
                             .momentum = 0.5,
                             .weight_decay = 0,
                             .residual_decay = 0.5,
                             .momentum_before = true};
      SgdRig rig(ctx, comm, kDecayed, config, settings);
      for (uint64_t step = 0; step < 4; ++step) {
        rig.set_gradients(exact_kinds()[0], step);
        const std::span<const float> q = rig.sgd->local_momentum();
        std::vector<float> input(kDecayed);  // beta v + (m q + g): multiples of 1/16
        for (size_t i = 0; i < kDecayed; ++i)
          input[i] = 0.5f * rig.sgd->residual()[i] + (0.5f * q[i] + rig.arena.gradients()[i]);
        rig.sgd->step({.step = step, .lr = 0, .density = kDecayedDensity});
        const std::vector<float> total = summed(ctx, comm, input);
        const std::vector<float> behind = summed(ctx, comm, rig.sgd->residual());
        size_t wrong = 0;
        for (size_t i = 0; i < kDecayed; ++i)
          wrong += rig.arena.gradients()[i] + behind[i] != total[i];
        EXPECT_EQ(wrong, 0u) << "masking " << masking << ", step " << step;
      }
    }
  });
}

TEST(ResidualDecayOptions, OverlapChangesNoBit) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    for (const char* name : {"topk", "gtopk", "dgc"}) {
      SgdConfig config{.sparsifier = name, .residual_decay = 0.9, .scope = Scope::layer};
      config.bucket_bytes = 0;
      SgdRig plain(ctx, comm, kDecayed, config);
      config.overlap = true;
      SgdRig overlapped(ctx, comm, kDecayed, config);
      for (uint64_t step = 0; step < 3; ++step)
        for (SgdRig* rig : {&plain, &overlapped}) {
          rig->sgd->begin({.step = step, .density = kDecayedDensity});
          rig->set_gradients(rounding_kind(), step);
          const auto& parameters = rig->arena.parameters();
          for (auto p = parameters.rbegin(); p != parameters.rend(); ++p)
            rig->sgd->gradient_ready(*p);
          rig->sgd->finish();
        }
      EXPECT_TRUE(same_bits(plain.arena.values(), overlapped.arena.values())) << name;
      EXPECT_TRUE(same_bits(plain.sgd->residual(), overlapped.sgd->residual())) << name;
    }
  });
}

TEST(ResidualDecayOptions, IsRejectedWithoutAResidual) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    EXPECT_EQ(test::error_text<UserError>(
                  [&] { SgdRig(ctx, comm, 10, {.sparsifier = "dense", .residual_decay = 0.9}); }),
              "[train] residual-decay has no effect: dense keeps no residual");
  });
}

}  // namespace
}  // namespace tw
