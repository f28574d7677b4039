// SIDCo's selection compared with a plain version of the published procedure.
#include "sparsify/selectors/sidco.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/selection.h"

namespace tw {
namespace {

using Indices = std::vector<uint32_t>;

/// The threshold after `stages` fits; a negative one where a fit has no entries.
double threshold_plainly(std::span<const float> u, double density, const SidcoOptions& options,
                         uint32_t stages) {
  std::vector<double> kept(u.size());
  std::ranges::transform(u, kept.begin(), [](float x) { return std::abs(double{x}); });
  const auto mean = [&] {
    return std::accumulate(kept.begin(), kept.end(), 0.0) / static_cast<double>(kept.size());
  };
  const double first = options.first_ratio;
  double threshold = mean() * std::log(1 / (stages == 1 ? density : std::max(first, density)));
  for (uint32_t stage = 1; stage < stages; ++stage) {
    std::erase_if(kept, [&](double x) { return x <= threshold; });
    if (kept.empty()) return -1;
    const double least = std::ranges::min(kept),
                 ratio = std::pow(density / first, 1.0 / (stages - 1));
    threshold = least + (mean() - least) * std::log(1 / ratio);
  }
  return threshold;
}

/// The published procedure for one slice.
struct Plain {
  Indices step(std::span<const float> g, size_t k, double density) {
    for (size_t i = 0; i < e.size(); ++i) e[i] += g[i];
    const double threshold =
        threshold_plainly(e, density, options, options.stages == 0 ? stages : options.stages);
    Indices set;
    for (size_t i = 0; i < e.size(); ++i)
      if (threshold >= 0 && std::abs(double{e[i]}) > threshold)
        set.push_back(static_cast<uint32_t>(i));
    fallbacks += threshold < 0;
    if (threshold < 0) set = sorted_top(e, k);
    for (uint32_t i : set) e[i] = 0;
    ratios.push_back(static_cast<double>(set.size()) / static_cast<double>(k));
    if (ratios.size() == options.adapt_every) adapt(density);
    return set;
  }
  void adapt(double density) {
    double ratio = 0;
    for (double x : ratios) ratio += x / static_cast<double>(ratios.size());
    if (ratio > 1 + options.tolerance_up && stages > 1) --stages;
    if (ratio < 1 - options.tolerance_down && std::pow(0.5, stages) > density) ++stages;
    ratios.clear();
  }

  SidcoOptions options;
  std::vector<float> e;
  uint32_t stages = 1;
  std::vector<double> ratios{};
  size_t fallbacks = 0;
};

uint32_t stages_in(Selector& selector) {
  uint32_t stages = 0;
  std::memcpy(&stages, selector.state().data(), sizeof stages);
  return stages;
}

TEST(Sidco, SendsTheEntriesOfThePublishedFits) {
  size_t fallbacks = 0;
  for (const auto& [name, u] : vectors())
    for (uint32_t stages : {1, 2, 3, 6})
      for (double density : {0.001, 0.02, 0.4}) {
        Context ctx(Device::cpu, 2);
        const SidcoOptions options{.stages = stages, .first_ratio = stages == 3 ? 0.4 : 0.25};
        Plain plain{.options = options, .e = std::vector<float>(u.size())};
        Sidco selector(ctx, options, 1);
        const size_t k = entries_to_keep(density, u.size());
        SparseVector out;
        std::vector<float> e(u.size());
        selector.select(ctx, {.g = u, .e = e, .k = k, .density = density}, out);
        EXPECT_EQ(Indices(out.index_span().begin(), out.index_span().end()),
                  plain.step(u, k, density))
            << name << ", density " << density << ", " << stages << " stages";
        fallbacks += plain.fallbacks;
      }
  EXPECT_GT(fallbacks, 0u);
}

struct Course {
  const char* distribution;
  double density;
  SidcoOptions options;
  uint32_t most;  // stages during the course
};

TEST(Sidco, AdaptsTheNumberOfFits) {
  constexpr size_t d = 20'011;
  const Course courses[] = {
      {"gaussian", 0.001, {}, 5},
      {"laplace", 0.01, {.adapt_every = 2}, 5},
      {"t3", 0.001, {.adapt_every = 3, .tolerance_up = 0.05, .tolerance_down = 0.3}, 10},
      {"lognormal", 0.001, {.adapt_every = 1, .tolerance_up = 0.5, .tolerance_down = 0.01}, 10},
      // more fits at any ratio: up to ceil(log2(1 / rho))
      {"gaussian", 0.2, {.adapt_every = 1, .tolerance_up = 99, .tolerance_down = -98}, 3},
      {"gaussian", 0.6, {.adapt_every = 1, .tolerance_up = 99, .tolerance_down = -98}, 1}};
  for (const auto& [distribution, density, options, most] : courses) {
    Context ctx;
    Plain plain{.options = options, .e = std::vector<float>(d)};
    Sidco selector(ctx, options, 1);
    const size_t k = entries_to_keep(density, d);
    std::vector<float> g(d), e(d);
    std::set<uint32_t> seen;
    for (uint64_t step = 0; step < 40; ++step) {
      SCOPED_TRACE(fmt::format("{}, density {}, step {}", distribution, density, step));
      fill_random(ctx, distributions().at(distribution), step, g);
      SparseVector out;
      selector.select(ctx, {.g = g, .e = e, .k = k, .density = density, .step = step}, out);
      ASSERT_EQ(Indices(out.index_span().begin(), out.index_span().end()),
                plain.step(g, k, density));
      ASSERT_EQ(stages_in(selector), plain.stages);
      seen.insert(plain.stages);
    }
    EXPECT_LE(*seen.rbegin(), most) << distribution;
    EXPECT_EQ(seen.size() > 1, most > 1) << distribution << " never changes its stages";
  }
}

// one fit sends many times k of a vector with two scales: later steps collect as many at once
TEST(Sidco, AnExcessOverKHasThePublishedEntriesInEachStep) {
  constexpr size_t d = 100'000, k = d / 1000;
  Context ctx;
  Plain plain{.options = {}, .e = std::vector<float>(d)};
  Sidco selector(ctx, {}, 1);
  std::vector<float> g(d), e(d);
  for (uint64_t step = 0; step < 4; ++step) {
    fill_random(ctx, distributions().at("gaussian"), step, g);
    for (size_t i = 0; i < d / 20; ++i) g[i] *= 1000;
    SparseVector out;
    selector.select(ctx, {.g = g, .e = e, .k = k, .density = 0.001, .step = step}, out);
    EXPECT_GT(out.count, 10 * k);
    ASSERT_EQ(Indices(out.index_span().begin(), out.index_span().end()), plain.step(g, k, 0.001));
  }
}

TEST(Sidco, TheMostFitsFollowFromTheDensityNotFromK) {
  // of seven entries, a density of 0.1 keeps one; ceil(log2(10)) is 4, ceil(log2(7)) is 3
  Context ctx;
  Sidco selector(ctx, {.adapt_every = 1, .tolerance_up = 99, .tolerance_down = -98}, 1);
  std::vector<float> g(7), e(7);
  for (uint64_t step = 0; step < 6; ++step) {
    fill_random(ctx, distributions().at("gaussian"), step, g);
    SparseVector out;
    selector.select(ctx, {.g = g, .e = e, .k = 1, .density = 0.1, .step = step}, out);
  }
  EXPECT_EQ(stages_in(selector), 4u);
}

TEST(Sidco, SlicesAdaptByThemselves) {
  Context ctx;
  Sidco selector(ctx, {.adapt_every = 1}, 2);
  std::vector<float> g(1000), e(1000), other(1000);
  SparseVector out;  // of both slices
  g[7] = 1;
  selector.select(ctx, {.g = g, .e = other, .k = 1, .density = 0.001, .slice = 0}, out);
  EXPECT_EQ(out.count, 1u);
  fill_random(ctx, distributions().at("uniform"), 1, g);
  selector.select(ctx, {.g = g, .e = e, .k = 1, .density = 0.001, .slice = 1}, out);
  EXPECT_EQ(out.count, 1u);
  ASSERT_EQ(selector.state().size(), 32u);
  EXPECT_EQ(stages_in(selector), 1u);
  uint32_t second = 0;
  std::memcpy(&second, selector.state().data() + 16, sizeof second);
  EXPECT_EQ(second, 2u);
}

}  // namespace
}  // namespace tw
