// Momentum before the selection (Lin et al. 2018, section 3) against the formula, element by
// element and rank by rank, with exact top-k as the selector.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/ranks.h"
#include "tests/support/sgd_rig.h"

namespace tw {
namespace {

constexpr size_t kLength = 1000;
constexpr float kMomentum = 0.5f, kDecay = 0.01f, kRate = 1e-3f;

/// Whole numbers: at a momentum of one half everything up to the mean is exact.
const GradientKind& wide() { return exact_kinds()[1]; }

struct Recipe {
  bool nesterov = false, masking = true;
  float clip = 0;
  double density = 0.05;
};

/// Every rank's q and v, and the parameters that all share.
struct Reference {
  Reference(int ranks, std::span<const float> values)
      : q(static_cast<size_t>(ranks), std::vector<float>(kLength)),
        v(q),
        m(kLength),
        w(values.begin(), values.end()) {}

  void step(const Recipe& recipe, uint64_t step) {
    std::vector<float> sum(kLength);
    for (size_t rank = 0; rank < q.size(); ++rank) accumulate(recipe, step, rank, sum);
    for (size_t i = 0; i < kLength; ++i) {
      // weight decay sits with the receiver and has momentum of its own
      const bool decays = i < kLength / 2 || i >= kLength / 2 + kLength / 4;
      if (decays) {
        m[i] = kMomentum * m[i] + kDecay * w[i];
        w[i] -= kRate * (recipe.nesterov ? kDecay * w[i] + kMomentum * m[i] : m[i]);
      }
      w[i] -= kRate * sum[i] / static_cast<float>(q.size());
    }
  }

  std::vector<std::vector<float>> q, v;
  std::vector<float> m, w;

 private:
  void accumulate(const Recipe& recipe, uint64_t step, size_t rank, std::vector<float>& sum) {
    std::vector<float>&velocity = q[rank], &kept = v[rank];
    std::vector<float> g(kLength);
    double norm = 0;
    for (size_t i = 0; i < kLength; ++i) {
      g[i] = SgdRig::gradient(wide(), static_cast<int>(rank), step, i);
      norm += double{g[i]} * g[i];
    }
    const double limit = recipe.clip / std::sqrt(static_cast<double>(q.size()));
    if (recipe.clip > 0 && std::sqrt(norm) > limit)
      for (float& x : g) x *= static_cast<float>(limit / std::sqrt(norm));
    for (size_t i = 0; i < kLength; ++i) {
      velocity[i] =
          recipe.nesterov ? kMomentum * (velocity[i] + g[i]) : kMomentum * velocity[i] + g[i];
      kept[i] += recipe.nesterov ? velocity[i] + g[i] : velocity[i];
    }
    std::vector<size_t> order(kLength);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return std::abs(kept[i]); });
    order.resize(static_cast<size_t>(recipe.density * kLength));
    for (size_t i : order) {
      sum[i] += kept[i];
      kept[i] = 0;
      if (recipe.masking) velocity[i] = 0;
    }
  }
};

SgdConfig config_of(const Recipe& recipe, const char* sparsifier = "topk") {
  return {.sparsifier = sparsifier,
          .momentum = kMomentum,
          .weight_decay = kDecay,
          .nesterov = recipe.nesterov,
          .momentum_before = true};
}

Settings settings_of(const Recipe& recipe) {
  Settings settings = default_settings();
  settings.set("dgc.masking", recipe.masking ? "true" : "false");
  settings.set("dgc.clip", fmt::format("{}", recipe.clip));
  return settings;
}

void expect_near(std::span<const float> ours, std::span<const float> theirs, const char* what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i)
    ASSERT_NEAR(ours[i], theirs[i], 1e-4 * (1 + std::abs(theirs[i]))) << what << " " << i;
}

TEST(MomentumCorrection, IsThePublishedOne) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Recipe& recipe :
           {Recipe{}, Recipe{.nesterov = true}, Recipe{.masking = false}, Recipe{.clip = 1000},
            Recipe{.clip = 1e9}, Recipe{.density = 1}}) {
        SgdRig rig(ctx, comm, kLength, config_of(recipe), settings_of(recipe));
        Reference reference(comm.size(), rig.arena.values());
        for (uint64_t step = 0; step < 4; ++step) {
          rig.step(wide(), {.step = step, .lr = kRate, .density = recipe.density});
          reference.step(recipe, step);
        }
        const size_t rank = static_cast<size_t>(comm.rank());
        expect_near(rig.sgd->local_momentum(), reference.q[rank], "q");
        expect_near(rig.sgd->residual(), reference.v[rank], "v");
        expect_near(rig.arena.values(), reference.w, "w");
      }
    });
}

TEST(MomentumCorrection, AtDensityOneWithoutMaskingIsMomentumSgd) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* sparsifier : {"dgc", "gtopk"}) {
        const Recipe recipe{.masking = false};
        SgdConfig corrected = config_of(recipe, sparsifier), after = corrected;
        after.momentum_before = false;
        SgdRig before(ctx, comm, kLength, corrected, settings_of(recipe));
        SgdRig behind(ctx, comm, kLength, after, settings_of(recipe));
        for (uint64_t step = 0; step < 4; ++step)
          for (SgdRig* rig : {&before, &behind})
            rig->step(wide(), {.step = step, .lr = kRate, .density = 1});
        EXPECT_TRUE(behind.sgd->local_momentum().empty());
        expect_near(before.arena.values(), behind.arena.values(), sparsifier);
      }
    });
}

}  // namespace
}  // namespace tw
