// Momentum before the selection (Lin et al. 2018) compared with its formula, for every element and
// rank: exact top-k, with an exchange that keeps all entries and with one that prunes.

#include <cmath>

#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

constexpr size_t kLength = 1000;
constexpr float kMomentum = 0.5f, kDecay = 1, kRate = 1e-2f;

/// Integers: with a momentum of one half all sums before the mean are exact.
const GradientKind& wide() { return exact_kinds()[1]; }

struct Recipe {
  bool nesterov = false, masking = true;
  float clip = 0;
  double density = 0.05;
  bool prunes = false;  ///< of the sum, the k largest

  size_t k() const { return static_cast<size_t>(density * kLength); }
};

/// Every rank's q and v, and the parameters that all share.
struct Reference {
  Reference(int ranks, std::span<const float> values)
      : q(static_cast<size_t>(ranks), std::vector<float>(kLength)),
        v(q),
        m(kLength),
        w(values.begin(), values.end()) {}

  void step(const Recipe& recipe, uint64_t step) {
    const size_t ranks = q.size();
    std::vector<std::vector<uint32_t>> selected(ranks);
    std::vector<float> sum(kLength), kept(kLength);
    for (size_t r = 0; r < ranks; ++r) {
      accumulate(recipe, gradient(recipe, step, r), q[r], v[r]);
      selected[r] = sorted_top(v[r], recipe.k());
      for (uint32_t i : selected[r]) sum[i] += v[r][i];
    }
    if (recipe.prunes)
      for (uint32_t i : sorted_top(sum, recipe.k())) kept[i] = sum[i];
    else
      kept = sum;
    for (size_t r = 0; r < ranks; ++r)
      for (uint32_t i : selected[r]) {
        if (kept[i] == 0 && sum[i] != 0) continue;  // pruned: as if it had not been selected
        v[r][i] = 0;
        if (recipe.masking && kept[i] != 0) q[r][i] = 0;
      }
    for (size_t i = 0; i < kLength; ++i) {
      // weight decay is applied after the exchange and has its own momentum
      const bool decays = i < kLength / 2 || i >= kLength / 2 + kLength / 4;
      if (decays) {
        m[i] = kMomentum * m[i] + kDecay * w[i];
        w[i] -= kRate * (recipe.nesterov ? kDecay * w[i] + kMomentum * m[i] : m[i]);
      }
      w[i] -= kRate * kept[i] / static_cast<float>(ranks);
    }
  }

  std::vector<std::vector<float>> q, v;
  std::vector<float> m, w;

 private:
  std::vector<float> gradient(const Recipe& recipe, uint64_t step, size_t rank) const {
    std::vector<float> g(kLength);
    double square = 0;
    for (size_t i = 0; i < kLength; ++i) {
      g[i] = SgdRig::gradient(wide(), static_cast<int>(rank), step, i);
      square += double{g[i]} * g[i];
    }
    const double limit = recipe.clip / std::sqrt(static_cast<double>(q.size()));
    if (recipe.clip > 0 && std::sqrt(square) > limit)
      for (float& x : g) x *= static_cast<float>(limit / std::sqrt(square));
    return g;
  }

  static void accumulate(const Recipe& recipe, std::span<const float> g, std::span<float> q,
                         std::span<float> v) {
    for (size_t i = 0; i < kLength; ++i) {
      q[i] = recipe.nesterov ? kMomentum * (q[i] + g[i]) : kMomentum * q[i] + g[i];
      v[i] += recipe.nesterov ? q[i] + g[i] : q[i];
    }
  }
};

SgdConfig config_of(const Recipe& recipe, const char* sparsifier) {
  return {.sparsifier = sparsifier,
          .momentum = kMomentum,
          .weight_decay = kDecay,
          .nesterov = recipe.nesterov,
          .momentum_before = true};
}

Settings settings_of(const Recipe& recipe) {
  Settings settings = default_settings();
  settings.set("momentum_correction.masking", recipe.masking ? "true" : "false");
  settings.set("momentum_correction.clip", fmt::format("{}", recipe.clip));
  return settings;
}

void expect_near(std::span<const float> ours, std::span<const float> theirs, const char* what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i)
    ASSERT_NEAR(ours[i], theirs[i], 1e-5 * (1 + std::abs(theirs[i]))) << what << " " << i;
}

TEST(MomentumCorrection, FollowsItsFormula) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Recipe& recipe :
           {Recipe{}, Recipe{.nesterov = true}, Recipe{.masking = false}, Recipe{.clip = 1000},
            Recipe{.clip = 1e9}, Recipe{.density = 1}, Recipe{.prunes = true},
            Recipe{.masking = false, .prunes = true}}) {
        const char* sparsifier = recipe.prunes ? "exact" : "topk";
        SgdRig rig(ctx, comm, kLength, config_of(recipe, sparsifier), settings_of(recipe));
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

// dgc selects from each tensor; the reference clips the whole gradient
TEST(MomentumCorrection, ClipsTheWholeGradientOnRequest) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const Recipe plain{.masking = false, .density = 1},
          clipped{.masking = false, .clip = 1000, .density = 1};
      Settings settings = settings_of(clipped);
      settings.set("momentum_correction.clip_by", "gradient");
      SgdRig rig(ctx, comm, kLength, config_of(clipped, "dgc"), settings);
      SgdRig whole(ctx, comm, kLength, config_of(clipped, "topk"), settings_of(clipped));
      SgdRig unclipped(ctx, comm, kLength, config_of(plain, "dgc"), settings_of(plain));
      for (uint64_t step = 0; step < 3; ++step)
        for (SgdRig* each : {&rig, &whole, &unclipped})
          each->step(wide(), {.step = step, .lr = kRate, .density = 1});
      expect_near(rig.arena.values(), whole.arena.values(), "values");
      EXPECT_FALSE(same_bits(rig.arena.values(), unclipped.arena.values()));
    });
}

TEST(MomentumCorrection, TheNormOfTheWholeGradientExcludesOverlap) {
  Settings settings = settings_of({.clip = 1});
  settings.set("momentum_correction.clip_by", "gradient");
  const SgdConfig config{.sparsifier = "dgc", .momentum_before = true, .overlap = true};
  EXPECT_THROW(resolve_sparsifier(config, settings), UserError);
  settings.set("momentum_correction.clip_by", "slice");
  EXPECT_EQ(resolve_sparsifier(config, settings).selector, "dgc");
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
        EXPECT_FALSE(before.sgd->local_momentum().empty());
        EXPECT_TRUE(behind.sgd->local_momentum().empty());
        expect_near(before.arena.values(), behind.arena.values(), sparsifier);
      }
    });
}

}  // namespace
}  // namespace tw
