// How the flat vector is cut for exchanges, selections and updates.

#include "sparsify/buckets.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

/// Two convolutions with a batch norm each.
void declare(ParameterArena& arena) {
  arena.add({.name = "conv1.weight", .shape = {8, 3, 3, 4}});
  arena.add({.name = "bn1.weight", .shape = {8}, .decay = false});
  arena.add({.name = "bn1.bias", .shape = {8}, .decay = false});
  arena.add({.name = "conv2.weight", .shape = {4, 1, 1, 8}});
  arena.add({.name = "fc.bias", .shape = {4}, .decay = false});
}

std::vector<std::pair<size_t, size_t>> pairs(const std::vector<Segment>& segments) {
  std::vector<std::pair<size_t, size_t>> result;
  for (const auto& [offset, length] : segments) result.emplace_back(offset, length);
  return result;
}
using Pairs = std::vector<std::pair<size_t, size_t>>;

TEST(Buckets, ModelScopeIsOneSelectionFromEverything) {
  ParameterArena arena;
  declare(arena);
  const auto buckets = plan_buckets(arena, {.small_tensors_dense = true}, 1);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].parameters, 5u);
  EXPECT_EQ(pairs(buckets[0].segments), (Pairs{{0, 340}}));
  EXPECT_FALSE(buckets[0].packed);
}

TEST(Buckets, LayerScopeCutsFromTheEndAtWholeTensors) {
  ParameterArena arena;
  declare(arena);
  const auto buckets = plan_buckets(arena, {.scope = Scope::layer}, 30 * sizeof(float));
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].offset, 304u);
  EXPECT_EQ(buckets[0].length, 36u);
  EXPECT_EQ(pairs(buckets[0].segments), (Pairs{{304, 32}, {336, 4}}));
  EXPECT_EQ(buckets[1].offset, 0u);
  EXPECT_EQ(pairs(buckets[1].segments), (Pairs{{0, 288}, {288, 8}, {296, 8}}));
  EXPECT_EQ(buckets[1].parameters, 3u);
}

TEST(Buckets, SmallTensorsCanBeExchangedDensely) {
  ParameterArena arena;
  declare(arena);
  const auto buckets =
      plan_buckets(arena, {.scope = Scope::layer, .small_tensors_dense = true}, 1 << 20);
  ASSERT_EQ(buckets.size(), 2u);
  const auto &small = buckets[0], &others = buckets[1];
  EXPECT_TRUE(small.packed);
  EXPECT_EQ(pairs(small.segments), (Pairs{{288, 8}, {296, 8}, {336, 4}}));
  EXPECT_EQ(small.elements(), 20u);
  EXPECT_EQ(small.entries(0.001), 20u);
  EXPECT_EQ(small.place(7), 295u);
  EXPECT_EQ(small.place(17), 337u);
  EXPECT_FALSE(others.packed);
  EXPECT_EQ(pairs(others.segments), (Pairs{{0, 288}, {304, 32}}));
  EXPECT_EQ(others.elements(), 340u);
  EXPECT_EQ(others.entries(1), 320u);
  // the first of the two waits for the gradients of both
  EXPECT_EQ(small.parameters, 5u);
  EXPECT_EQ(others.parameters, 0u);
}

TEST(BoundsOfCorrection, AreThoseOfTensorsThatAreSelectedFrom) {
  using Bounds = std::vector<uint32_t>;
  ParameterArena arena;
  declare(arena);
  EXPECT_EQ(bounds_of_correction(arena, {}), (Bounds{}));
  Sparsifier dgc{.momentum_before = true, .scope = Scope::layer, .small_tensors_dense = true};
  EXPECT_EQ(bounds_of_correction(arena, dgc), (Bounds{0, 288, 304, 336}));
  dgc.scope = Scope::model;  // no tensor is exchanged dense
  EXPECT_EQ(bounds_of_correction(arena, dgc), (Bounds{0}));
}

TEST(DecayBounds, AreRelativeToTheirSegment) {
  using Bounds = std::vector<uint32_t>;
  const Bounds bounds{0, 288, 304, 336};
  const auto bounds_in = [](const Bounds& all, const Segment& segment) {
    Bounds within{7};  // old contents are discarded
    bounds_within(all, segment, within);
    return within;
  };
  EXPECT_EQ(bounds_in(bounds, {0, 340}), bounds);
  EXPECT_EQ(bounds_in(bounds, {10, 20}), (Bounds{0}));
  EXPECT_EQ(bounds_in(bounds, {288, 16}), (Bounds{}));
  EXPECT_EQ(bounds_in(bounds, {290, 46}), (Bounds{14}));
  EXPECT_EQ(bounds_in(bounds, {100, 240}), (Bounds{0, 188, 204, 236}));
  EXPECT_EQ(bounds_in({}, {0, 340}), (Bounds{}));
}

}  // namespace
}  // namespace tw
