// Trimmed top-k and RedSync's search compared with plain versions of the published procedures.
#include <gtest/gtest.h>

#include "tests/support/selection.h"

namespace tw {
namespace {

/// Vectors on which the searches end in different places.
std::vector<std::pair<std::string, std::vector<float>>> shaped_vectors() {
  auto all = vectors();
  Context ctx;
  for (const auto& [name, draw] : distributions())
    for (double power : {0.1, 0.3, 3.0}) {
      std::vector<float> u(20'011);
      fill_random(ctx, draw, 7, u);
      for (float& x : u) x = std::copysign(std::pow(std::abs(x), static_cast<float>(power)), x);
      all.emplace_back(fmt::format("{}^{}", name, power), std::move(u));
    }
  return all;
}

struct Between {
  explicit Between(std::span<const float> u) {
    for (float x : u) {
      mean += std::abs(double{x});
      max = std::max(max, std::abs(double{x}));
    }
    mean /= static_cast<double>(u.size());
  }
  std::vector<uint32_t> above(std::span<const float> u, double r) const {
    const double threshold = mean + r * (max - mean);
    std::vector<uint32_t> set;
    for (size_t i = 0; i < u.size(); ++i)
      if (std::abs(double{u[i]}) > threshold) set.push_back(static_cast<uint32_t>(i));
    return set;
  }
  double mean = 0, max = 0;
};

/// The k largest of a set, lower index first among equals; ascending.
std::vector<uint32_t> largest_of(std::vector<uint32_t> set, std::span<const float> u, size_t k) {
  std::ranges::stable_sort(set,
                           [&](uint32_t a, uint32_t b) { return std::abs(u[a]) > std::abs(u[b]); });
  set.resize(std::min(k, set.size()));
  std::ranges::sort(set);
  return set;
}

std::vector<uint32_t> trimmed_plainly(std::span<const float> u, size_t k) {
  const Between between(u);
  for (double r : {0.8, 0.6, 0.4, 0.2, 0.0})
    if (const auto set = between.above(u, r); set.size() >= k) return largest_of(set, u, k);
  return sorted_top(u, k);
}

std::vector<uint32_t> redsync_plainly(std::span<const float> u, size_t k) {
  const Between between(u);
  if (k == 1 || between.max == 0) return sorted_top(u, k);
  double low = 0, high = 1;
  std::vector<uint32_t> set;
  while (high - low > 0.2) {
    const double r = low + (high - low) / 2;
    set = between.above(u, r);
    if (set.size() > k && set.size() < 2 * k) break;
    if (static_cast<double>(set.size()) < static_cast<double>(k) / 2)
      high = r;
    else
      low = r;
  }
  return largest_of(set, u, 2 * k);
}

const size_t kSome[] = {1, 2, 20, 300, 5000, 20'011};

TEST(Trimmed, MatchesThePublishedProcedure) {
  for (const auto& [name, u] : shaped_vectors())
    for (size_t k : kSome)
      EXPECT_EQ(select("trimmed", u, k).indices, trimmed_plainly(u, k)) << name << ", k " << k;
}

TEST(Trimmed, SendsTheEntriesOfTopK) {
  for (const auto& [name, u] : shaped_vectors())
    for (size_t k : kSome)
      EXPECT_EQ(select("trimmed", u, k).indices, select("topk", u, k).indices) << name << " " << k;
}

TEST(RedSync, MatchesThePublishedProcedure) {
  std::map<size_t, size_t> endings;  // number of selections by size, in thirds of k
  for (const auto& [name, u] : shaped_vectors())
    for (size_t k : kSome) {
      const auto expected = redsync_plainly(u, k);
      EXPECT_EQ(select("redsync", u, k).indices, expected) << name << ", k " << k;
      EXPECT_LE(expected.size(), 2 * k);
      ++endings[3 * expected.size() / k];
    }
  EXPECT_GE(endings.size(), 5u) << "the vectors do not reach all ends of the search";
}

TEST(RedSync, SelectsNothingAmongEqualMagnitudes) {
  // equal magnitudes: none exceeds their mean
  EXPECT_TRUE(select("redsync", std::vector<float>(1000, 2.0f), 10).indices.empty());
  EXPECT_EQ(select("redsync", std::vector<float>(1000, 2.0f), 1).indices.size(), 1u);
  EXPECT_TRUE(select("redsync", std::vector<float>(1000), 10).indices.empty());
}

}  // namespace
}  // namespace tw
