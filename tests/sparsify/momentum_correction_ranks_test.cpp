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
    if (recipe.clip > 0 && std::sqrt(square) > recipe.clip)
      for (float& x : g) x *= static_cast<float>(recipe.clip / std::sqrt(square));
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

/// What a step of dgc with clip 10 adds to the three tensors of a rig (the second has one
/// dimension) at a rate of 1. Each tensor has one element of 300 on each rank: another one on every
/// rank, or the same.
std::vector<double> applied_norms(Context& ctx, Communicator& comm, const char* clip_by,
                                  bool same_element) {
  Settings settings = default_settings();
  settings.set("momentum_correction.clip", "10");
  settings.set("momentum_correction.clip_by", clip_by);
  SgdRig rig(ctx, comm, kLength, {.sparsifier = "dgc", .weight_decay = 0, .momentum_before = true},
             settings);
  std::vector<float> update(rig.arena.values().begin(), rig.arena.values().end());
  std::ranges::fill(rig.arena.gradients(), 0.0f);
  const size_t element = same_element ? 0 : static_cast<size_t>(comm.rank());
  for (const Parameter& p : rig.arena.parameters()) rig.arena.gradients()[p.offset + element] = 300;
  rig.sgd->step({.step = 0, .lr = 1, .density = 1});
  for (size_t i = 0; i < kLength; ++i) update[i] -= rig.arena.values()[i];
  std::vector<double> norms;
  for (const Parameter& p : rig.arena.parameters()) {
    double square = 0;
    for (size_t i = p.offset; i < p.offset + p.length(); ++i)
      square += double{update[i]} * double{update[i]};
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

// By hand. The code of DGC's authors clips each tensor of a rank, a mean over its images, to 10,
// and those that are not compressed after the mean. The mean over P ranks of orthogonal tensors of
// norm 10 has the norm 10 / sqrt(P); the mean of equal ones has 10.
TEST(MomentumCorrection, ClipsTensorsAsTheAuthorsCode) {
  for (const auto& [ranks, orthogonal] :
       {std::pair{1, 10.0}, {2, 7.071068}, {4, 5.0}, {8, 3.535534}})
    run_ranks(ranks, [orthogonal = orthogonal](Context& ctx, Communicator& comm) {
      const auto other = applied_norms(ctx, comm, "slice", false);
      const auto same = applied_norms(ctx, comm, "slice", true);
      for (const size_t tensor : {0, 1, 2}) {
        EXPECT_NEAR(other[tensor], tensor == 1 ? 10 : orthogonal, 1e-4) << tensor;
        EXPECT_NEAR(same[tensor], 10, 1e-4) << tensor;
      }
    });
}

// By hand. The paper clips all tensors of a rank, divided by P, to 10 / sqrt(P), and sums them:
// orthogonal gradients have the norm 10, as with one rank, and equal ones 10 sqrt(P). Each of the
// three tensors has the same norm.
TEST(MomentumCorrection, ClipsTheWholeGradientAsThePaper) {
  for (const auto& [ranks, equal] :
       {std::pair{1, 5.773503}, {2, 8.164966}, {4, 11.547005}, {8, 16.329932}})
    run_ranks(ranks, [equal = equal](Context& ctx, Communicator& comm) {
      for (const double norm : applied_norms(ctx, comm, "gradient", false))
        EXPECT_NEAR(norm, 5.773503, 1e-4);
      for (const double norm : applied_norms(ctx, comm, "gradient", true))
        EXPECT_NEAR(norm, equal, 1e-4);
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
