#include "sparsify/exchanges/topk_merge.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/core/rng.h"

namespace tw {
namespace {

using Entries = std::map<uint32_t, float>;

SparseVector sparse(const Entries& entries) {
  SparseVector v;
  v.reserve(entries.size());
  for (const auto& [index, value] : entries) {
    v.indices[v.count] = index;
    v.values[v.count++] = value;
  }
  return v;
}

Entries entries(const SparseVector& v) {
  Entries result;
  for (size_t i = 0; i < v.count; ++i) {
    EXPECT_TRUE(i == 0 || v.indices[i - 1] < v.indices[i]);
    result[v.indices[i]] = v.values[i];
  }
  return result;
}

struct Merged {
  Entries kept, pruned;
};

Merged merge(const Entries& a, const Entries& b, size_t k) {
  const SparseVector left = sparse(a), right = sparse(b);
  SparseVector out, pruned;
  TopkMerge()(left.view(), right.view(), k, out, &pruned);
  return {.kept = entries(out), .pruned = entries(pruned)};
}

TEST(TopkMerge, AddsAndKeepsTheLargest) {
  const auto [kept, pruned] = merge({{1, 5.0f}, {3, -4.0f}, {9, 1.0f}}, {{3, -3.0f}, {4, 6.0f}}, 2);
  EXPECT_EQ(kept, (Entries{{3, -7.0f}, {4, 6.0f}}));
  EXPECT_EQ(pruned, (Entries{{1, 5.0f}, {9, 1.0f}}));
}

TEST(TopkMerge, TiesKeepTheLowerIndex) {
  const auto [kept, pruned] = merge({{7, 2.0f}, {8, -2.0f}}, {{2, -2.0f}, {9, 2.0f}}, 3);
  EXPECT_EQ(kept, (Entries{{2, -2.0f}, {7, 2.0f}, {8, -2.0f}}));
  EXPECT_EQ(pruned, (Entries{{9, 2.0f}}));
}

TEST(TopkMerge, DropsZeroSums) {
  const auto [kept, pruned] = merge({{1, 5.0f}, {2, 1.0f}}, {{1, -5.0f}}, 1);
  EXPECT_EQ(kept, (Entries{{2, 1.0f}}));
  EXPECT_EQ(pruned, Entries{});
}

TEST(TopkMerge, AcceptsEmptyVectorsAndNoPrunedOutput) {
  EXPECT_EQ(merge({}, {}, 3).kept, Entries{});
  EXPECT_EQ(merge({{1, 1.0f}}, {}, 3).kept, (Entries{{1, 1.0f}}));
  EXPECT_EQ(merge({}, {{0, 1.0f}, {999, 2.0f}}, 1).kept, (Entries{{999, 2.0f}}));
  const SparseVector a = sparse({{1, 1.0f}, {2, 2.0f}});
  SparseVector out;
  TopkMerge()(a.view(), {}, 1, out);
  EXPECT_EQ(entries(out), (Entries{{2, 2.0f}}));
}

TEST(TopkMerge, FollowsTheDefinitionOnRandomVectors) {
  const Philox philox(3, Purpose::test);
  for (uint32_t trial = 0; trial < 200; ++trial) {
    Entries a, b, sum;
    for (uint32_t i = 0; i < 60; ++i) {
      const auto r = philox(trial, i);
      const float value = static_cast<float>(static_cast<int>(r[1] % 9) - 4);
      if (value != 0) (i % 2 ? a : b)[r[0] % 50] = value;
    }
    for (const auto& [index, value] : a) sum[index] += value;
    for (const auto& [index, value] : b) sum[index] += value;
    std::erase_if(sum, [](const auto& entry) { return entry.second == 0; });
    std::vector<std::pair<uint32_t, float>> order(sum.begin(), sum.end());
    std::ranges::stable_sort(order, [](const auto& x, const auto& y) {
      return std::abs(x.second) > std::abs(y.second);
    });
    const size_t k = std::min<size_t>(1 + trial % 30, order.size());
    const auto middle = order.begin() + static_cast<ptrdiff_t>(k);
    const auto [kept, pruned] = merge(a, b, k);
    EXPECT_EQ(kept, Entries(order.begin(), middle));
    EXPECT_EQ(pruned, Entries(middle, order.end()));
  }
}

}  // namespace
}  // namespace tw
