// DGC's selection compared with a plain version of the published procedure.
#include "sparsify/selectors/dgc.h"

#include <gtest/gtest.h>

#include "tests/support/selection.h"

namespace tw {
namespace {

Selection select_dgc(std::span<const float> u, double density, const SelectorRank& rank = {},
                     uint64_t step = 0, size_t slice = 0) {
  Context ctx;
  const auto selector = selectors().find("dgc").value(ctx, default_settings(), rank);
  Selection result;
  result.residual.assign(u.size(), 0);
  SparseVector out;
  selector->select(ctx,
                   {.g = u,
                    .e = result.residual,
                    .k = entries_to_keep(density, u.size()),
                    .density = density,
                    .step = step,
                    .slice = slice},
                   out);
  result.indices.assign(out.index_span().begin(), out.index_span().end());
  return result;
}

size_t asked_for(std::span<const float> u, double density) {
  return static_cast<size_t>(std::ceil(density * static_cast<double>(u.size())));
}

/// The authors' loop for a sample that starts at `start`; `top`: the k largest of u.
std::vector<uint32_t> selected_plainly(std::span<const float> u, std::vector<uint32_t> top,
                                       double density, size_t start) {
  const size_t n = u.size(), k = asked_for(u, density);
  const DgcSample sample = dgc_sample(n, density);
  std::vector<float> magnitudes;
  for (size_t i = start; i < n; i += sample.stride) magnitudes.push_back(std::abs(u[i]));
  std::ranges::sort(magnitudes, std::greater<>());
  const double rank = std::ceil(density * static_cast<double>(sample.count));
  float threshold = magnitudes[static_cast<size_t>(rank) - 1];
  const auto passing = [&] {
    return static_cast<double>(
        std::ranges::count_if(u, [&](float x) { return std::abs(x) >= threshold; }));
  };
  for (int round = 0; round < 10 && passing() < 0.8 * static_cast<double>(k); ++round)
    threshold *= 0.8f;
  std::erase_if(top, [&](uint32_t i) { return std::abs(u[i]) < threshold; });
  return top;
}

/// Whether the authors' loop sends `got` for some start of the sample. The start that the selector
/// drew is not known here.
bool is_published(std::span<const float> u, double density, const std::vector<uint32_t>& got) {
  const std::vector<uint32_t> top = sorted_top(u, asked_for(u, density));
  const size_t stride = dgc_sample(u.size(), density).stride;
  for (size_t start = 0; start < stride; ++start)
    if (selected_plainly(u, top, density, start) == got) return true;
  return false;
}

TEST(Dgc, SamplesAtLeastOnePerCentAndTwoOverDensity) {
  for (size_t n : {1, 100, 1999, 2000, 2001, 2304, 36'864, 200'003, 2'359'296, 25'557'032})
    for (double density : {0.001, 0.01, 0.25}) {
      const DgcSample sample = dgc_sample(n, density);
      EXPECT_EQ(sample.count, n / sample.stride);
      EXPECT_EQ(sample.stride % 2, 1u);
      EXPECT_GE(sample.count, std::min(n, static_cast<size_t>(std::ceil(2 / density))));
      EXPECT_GE(static_cast<double>(sample.count), 0.01 * static_cast<double>(n));
    }
  // worked out by hand from the authors' code
  EXPECT_EQ(dgc_sample(2304, 0.001).stride, 1u);
  EXPECT_EQ(dgc_sample(2'359'296, 0.001).stride, 97u);
  EXPECT_EQ(dgc_sample(36'864, 0.001).stride, 17u);
}

TEST(Dgc, MatchesThePublishedProcedure) {
  for (const auto& [name, u] : vectors())
    for (double density : {0.001, 0.01, 0.1}) {
      const auto got = select_dgc(u, density).indices;
      EXPECT_TRUE(is_published(u, density, got))
          << name << ", density " << density << ", " << got.size() << " sent";
    }
}

TEST(Dgc, LowersTheThresholdUntilEnoughPass) {
  // sampled elements are up to a hundred times larger than the rest: up to ten rounds or more
  Context ctx;
  std::vector<float> u(100'003);
  fill_random(ctx, distributions().at("uniform"), 2, u);
  for (float outlier : {1.5f, 4.0f, 9.0f, 100.0f}) {
    std::vector<float> v(u);
    for (size_t i = 0; i < v.size(); i += 1000) v[i] = outlier;
    EXPECT_TRUE(is_published(v, 0.01, select_dgc(v, 0.01).indices)) << outlier;
  }
}

TEST(Dgc, SendsAtLeastFourFifthsOfThatAsManySamplesShow) {
  // the 11th largest of a sample is too high a threshold in about every fourth step
  Context ctx;
  std::vector<float> u(100'003);
  fill_random(ctx, distributions().at("gaussian"), 4, u);
  for (uint64_t step = 0; step < 20; ++step)
    EXPECT_GE(select_dgc(u, 0.01, {}, step).indices.size(), 801u) << step;
}

TEST(Dgc, SendsAtMostTheCeilOfDensityTimesLengthLargest) {
  std::vector<float> u(1001);
  for (size_t i = 0; i < u.size(); ++i) u[i] = static_cast<float>(i * 7919 % 1001) - 500.25f;
  // the sample is the whole vector: sends exactly the k largest, k rounded up
  EXPECT_EQ(select_dgc(u, 0.001).indices, sorted_top(u, 2));
  EXPECT_EQ(select_dgc(u, 0.0015).indices, sorted_top(u, 2));
  EXPECT_EQ(select_dgc(std::vector<float>(1000, -1.0f), 0.01).indices.size(), 10u);
}

TEST(Dgc, TheSampleChangesWithStepSliceSeedAndRank) {
  Context ctx;
  std::vector<float> u(200'003);
  fill_random(ctx, distributions().at("gaussian"), 4, u);
  const auto first = select_dgc(u, 0.01).indices;
  EXPECT_EQ(select_dgc(u, 0.01).indices, first);
  // samples that let more than k entries pass all give the k largest; about half of them do not
  size_t changed = 0, sliced = 0;
  for (uint64_t step = 1; step < 8; ++step) {
    changed += select_dgc(u, 0.01, {}, step).indices != first;
    sliced += select_dgc(u, 0.01, {}, 0, step).indices != first;
    changed += select_dgc(u, 0.01, {.seed = step + 1}).indices != first;
    changed += select_dgc(u, 0.01, {.rank = static_cast<int>(step)}).indices != first;
  }
  EXPECT_GT(changed, 4u);
  EXPECT_GT(sliced, 1u);
}

}  // namespace
}  // namespace tw
