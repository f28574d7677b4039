// Rand-k: every index is equally likely; the expected norm of the residual.
#include "sparsify/selectors/randk.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/selection.h"

namespace tw {
namespace {

std::vector<uint32_t> drawn(uint64_t seed, uint64_t id, size_t n, size_t k) {
  RandomSubset subset;
  subset.draw({Philox(seed, Purpose::test), id, n, k});
  std::vector<uint32_t> positions;
  subset.for_each([&](size_t at) { positions.push_back(static_cast<uint32_t>(at)); });
  return positions;
}

TEST(RandomSubset, HasKPositionsAscending) {
  for (size_t n : {1, 2, 63, 64, 65, 1000})
    for (size_t k : {size_t{0}, size_t{1}, n / 2, n - 1, n}) {
      const auto positions = drawn(1, 7, n, k);
      EXPECT_EQ(positions.size(), k);
      EXPECT_EQ(std::set(positions.begin(), positions.end()).size(), k);
      EXPECT_TRUE(std::ranges::is_sorted(positions));
      EXPECT_TRUE(k == 0 || positions.back() < n);
    }
}

// as on a GPU: each draw finds the position it adds independently of the others
TEST(FloydSample, DrawsMayBeTakenInAnyOrder) {
  for (size_t n : {1, 2, 3, 10, 100, 5000})
    for (size_t k : {size_t{1}, n / 10, n / 2, n - 1, n}) {
      if (k == 0) continue;
      for (uint64_t id = 0; id < 5; ++id) {
        const FloydSample sample{Philox(3, Purpose::test), id, n, k};
        std::map<size_t, size_t> firsts;
        for (size_t i = 0; i < k; ++i) firsts.try_emplace(sample.draw(i), i);
        std::set<uint32_t> added;
        for (size_t i = k; i-- > 0;) {
          const bool repeats = sample.repeats(i, [&](size_t at) { return firsts.at(at); });
          added.insert(static_cast<uint32_t>(repeats ? sample.last(i) : sample.draw(i)));
        }
        EXPECT_EQ(std::vector(added.begin(), added.end()), drawn(3, id, n, k))
            << "n " << n << ", k " << k << ", id " << id;
      }
    }
}

// the statistic has mean `cells - 1` and about twice that as variance
double chi_square(const std::vector<size_t>& counts, double expected) {
  double sum = 0;
  for (size_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}
bool plausible(double statistic, double freedom) {
  return std::abs(statistic - freedom) < 5 * std::sqrt(2 * freedom);
}

TEST(RandomSubset, EverySubsetIsEquallyLikely) {
  std::map<std::vector<uint32_t>, size_t> seen;
  constexpr size_t draws = 40'000;
  for (uint64_t id = 0; id < draws; ++id) ++seen[drawn(3, id, 6, 3)];
  ASSERT_EQ(seen.size(), 20u);  // 6 over 3
  std::vector<size_t> counts;
  for (const auto& [subset, count] : seen) counts.push_back(count);
  EXPECT_TRUE(plausible(chi_square(counts, draws / 20.0), 19)) << chi_square(counts, draws / 20.0);
}

TEST(RandomSubset, EveryPositionIsEquallyLikely) {
  constexpr size_t n = 1000, k = 30, draws = 20'000;
  std::vector<size_t> counts(n);
  for (uint64_t id = 0; id < draws; ++id)
    for (uint32_t at : drawn(4, id, n, k)) ++counts[at];
  // a position is in a subset or not: the variance of a count is (1 - k/n) of its mean
  const double expected = double{draws} * k / n;
  const double statistic = chi_square(counts, expected) / (1 - double{k} / n);
  EXPECT_TRUE(plausible(statistic, n - 1)) << statistic;
}

std::unique_ptr<Selector> make(const std::string& seed, const SelectorRank& rank) {
  Context ctx;
  Settings settings = default_settings();
  settings.set("randk.seed", seed);
  return selectors().find("randk").value(ctx, settings, rank);
}

std::vector<uint32_t> indices(Selector& selector, std::span<const float> u, size_t k,
                              uint64_t step = 0, size_t slice = 0) {
  Context ctx;
  std::vector<float> e(u.size());
  SparseVector out;
  selector.select(ctx, {.g = u, .e = e, .k = k, .step = step, .slice = slice}, out);
  return {out.index_span().begin(), out.index_span().end()};
}

TEST(RandK, ResidualHasTheExpectedNorm) {
  // heavy tails: the residual depends strongly on the drawn indices
  constexpr size_t d = 2000, k = 100, steps = 3000;
  Context ctx;
  std::vector<float> u(d), e(d);
  fill_random(ctx, distributions().at("t3"), 5, u);
  double whole = 0;
  for (float x : u) whole += double{x} * double{x};
  const auto selector = make("worker", {});
  SparseVector out;
  double sum = 0, squares = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    std::ranges::fill(e, 0.0f);
    out.count = 0;
    selector->select(ctx, {.g = u, .e = e, .k = k, .step = step}, out);
    EXPECT_EQ(out.count, k);
    double left = 0;
    for (float x : e) left += double{x} * double{x};
    sum += left / whole;
    squares += left / whole * (left / whole);
  }
  const double mean = sum / steps;
  const double error = std::sqrt((squares / steps - mean * mean) / steps);
  EXPECT_NEAR(mean, 1 - double{k} / d, 5 * error);
  EXPECT_LT(5 * error, 0.01);
}

TEST(RandK, ChangesWithStepSeedRankAndSlice) {
  const std::vector<float> u(10'000, 1.0f);
  const auto first = indices(*make("worker", {}), u, 100);
  EXPECT_EQ(indices(*make("worker", {}), u, 100), first);
  EXPECT_NE(indices(*make("worker", {}), u, 100, 1), first);
  EXPECT_NE(indices(*make("worker", {.seed = 2}), u, 100), first);
  EXPECT_NE(indices(*make("worker", {.rank = 1}), u, 100), first);
  EXPECT_NE(indices(*make("worker", {}), u, 100, 0, 1), first);
}

TEST(RandK, SharedSeedGivesAllRanksTheSameIndicesZerosIncluded) {
  std::vector<float> u(10'000);
  const auto first = indices(*make("shared", {.rank = 0}), u, 100, 3);
  EXPECT_EQ(first.size(), 100u);
  u.assign(10'000, 2.0f);
  EXPECT_EQ(indices(*make("shared", {.rank = 5}), u, 100, 3), first);
  EXPECT_NE(indices(*make("shared", {.rank = 5}), u, 100, 4), first);
  const SelectorEntry& entry = selectors().find("randk").value;
  Settings settings = default_settings();
  EXPECT_FALSE(entry.shared_indices(settings));
  settings.set("randk.seed", "shared");
  EXPECT_TRUE(entry.shared_indices(settings));
  EXPECT_TRUE(indices(*make("worker", {}), std::vector<float>(10'000), 100).empty());
}

}  // namespace
}  // namespace tw
