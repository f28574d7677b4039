// The flat arenas of parameters: order, no padding, initial values, lookup, hashes.
#include "engine/plan/arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/io/weights.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

/// Odd lengths, so that padding would show.
void declare(ParameterArena& arena) {
  arena.add({.name = "conv.weight", .shape = {5, 3, 3, 3}, .init = Init::normal, .deviation = 1});
  arena.add({.name = "bn.weight", .shape = {5}, .init = Init::ones, .decay = false});
  arena.add({.name = "bn.bias", .shape = {5}, .decay = false});
  arena.add_statistic({.name = "bn.running_mean", .shape = {5}});
  arena.add_statistic({.name = "bn.running_var", .shape = {5}, .init = Init::ones});
  arena.add({.name = "fc.weight", .shape = {7, 5}, .init = Init::normal, .deviation = 1});
}

TEST(Arena, IsDenseAndInTheOrderOfConstruction) {
  Context ctx;
  ParameterArena arena;
  declare(arena);
  arena.allocate(ctx, 1);
  size_t offset = 0;
  for (const Parameter& p : arena.parameters()) {
    EXPECT_EQ(p.offset, offset);
    EXPECT_EQ(arena.value(p).data, arena.values().data() + offset);
    EXPECT_EQ(arena.gradient(p).data, arena.gradients().data() + offset);
    offset += p.length();
  }
  EXPECT_EQ(arena.size(), offset);
  EXPECT_EQ(arena.values().size(), offset);
  EXPECT_EQ(arena.gradients().size(), offset);
  EXPECT_EQ(arena.gradients_with_control().size(), offset + 1);
  EXPECT_EQ(arena.statistics_size(), 10u);
  EXPECT_EQ(arena.statistic_values().size(), 10u);
}

TEST(Arena, ReferencesStayValid) {
  ParameterArena arena;
  const Parameter& first = arena.add({.name = "first", .shape = {3}});
  for (int i = 0; i < 1000; ++i) arena.add({.name = fmt::format("p{}", i), .shape = {1}});
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(&first, &arena.parameters().front());
}

TEST(Arena, ADuplicateNameIsRejected) {
  ParameterArena arena;
  arena.add({.name = "w", .shape = {3}});
  EXPECT_THROW(arena.add({.name = "w", .shape = {3}}), std::logic_error);
  EXPECT_THROW(arena.add_statistic({.name = "w", .shape = {3}}), std::logic_error);
  EXPECT_EQ(arena.size(), 3u);
}

TEST(Arena, InitialisesAsDeclared) {
  Context ctx;
  ParameterArena arena;
  declare(arena);
  arena.allocate(ctx, 1);
  for (const float x : arena.value(arena.parameters()[1]).as<float>()) EXPECT_EQ(x, 1.0f);
  for (const float x : arena.value(arena.parameters()[2]).as<float>()) EXPECT_EQ(x, 0.0f);
  for (const float x : arena.statistic(arena.statistics()[1]).as<float>()) EXPECT_EQ(x, 1.0f);
  for (const float x : arena.gradients()) EXPECT_EQ(x, 0.0f);
}

TEST(Arena, NormalHasItsDeviationAndMeanZero) {
  constexpr int64_t kLength = 100'003, kFan = 72;
  Context ctx;
  ParameterArena arena;
  arena.add(
      {.name = "w", .shape = {kLength}, .init = Init::normal, .deviation = he_deviation(kFan)});
  arena.allocate(ctx, 5);
  double sum = 0, squares = 0;
  for (const double x : arena.values()) {
    EXPECT_NE(x, 0.0);
    sum += x;
    squares += x * x;
  }
  const double n = kLength, variance = 2.0 / kFan;
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n / variance, 1, 5 * std::sqrt(2 / n));
}

TEST(Arena, NormalNeedsADeviation) {
  Context ctx;
  ParameterArena arena;
  arena.add({.name = "w", .shape = {3}, .init = Init::normal});
  EXPECT_THROW(arena.allocate(ctx, 1), std::logic_error);
}

TEST(Arena, SeedDecidesTheValues) {
  Context ctx;
  const auto hash = [&](uint64_t seed) {
    ParameterArena arena;
    declare(arena);
    arena.allocate(ctx, seed);
    return weights_hash(arena);
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
  EXPECT_NE(hash(1), hash(uint64_t{1} << 32));
}

TEST(Arena, ParametersStartDifferently) {
  Context ctx;
  ParameterArena arena;
  for (const char* name : {"a", "b"})
    arena.add({.name = name, .shape = {8}, .init = Init::normal, .deviation = 1});
  arena.allocate(ctx, 1);
  for (size_t i = 0; i < 8; ++i) EXPECT_NE(arena.values()[i], arena.values()[i + 8]);
}

TEST(Arena, FindsTheParameterOfAnElement) {
  ParameterArena arena;
  declare(arena);
  for (const Parameter& p : arena.parameters()) {
    EXPECT_EQ(&arena.at(p.offset), &p);
    EXPECT_EQ(&arena.at(p.offset + p.length() - 1), &p);
  }
  EXPECT_THROW(arena.at(arena.size()), std::logic_error);
}

TEST(Arena, LayoutHashChangesWithEveryDifference) {
  using Build = std::function<void(ParameterArena&)>;
  const auto hash = [](const Build& build) {
    ParameterArena arena;
    build(arena);
    return arena.layout_hash();
  };
  const auto base = [](ParameterArena& a) {
    a.add({.name = "a", .shape = {2, 3}});
    a.add({.name = "b", .shape = {4}});
  };
  const std::vector<Build> others{[](ParameterArena& a) {
                                    a.add({.name = "b", .shape = {4}});
                                    a.add({.name = "a", .shape = {2, 3}});
                                  },
                                  [](ParameterArena& a) {
                                    a.add({.name = "a", .shape = {3, 2}});
                                    a.add({.name = "b", .shape = {4}});
                                  },
                                  [](ParameterArena& a) {
                                    a.add({.name = "a", .shape = {2, 3}});
                                    a.add({.name = "c", .shape = {4}});
                                  },
                                  [](ParameterArena& a) {
                                    a.add({.name = "a", .shape = {2, 3}});
                                    a.add_statistic({.name = "b", .shape = {4}});
                                  },
                                  [](ParameterArena& a) {
                                    a.add({.name = "a", .shape = {2, 3}});
                                  }};
  EXPECT_EQ(hash(base), hash(base));
  for (size_t i = 0; i < others.size(); ++i) EXPECT_NE(hash(base), hash(others[i])) << i;
}

TEST(Arena, ANonfiniteGradientIsNamedWithoutSignOfNanAndWithAdvice) {
  ParameterArena arena;
  declare(arena);
  const auto said = [&](float value) {
    return error_text<CollectiveFault>([&] { arena.fail_nonfinite(1, 136, value, 7, 1); });
  };
  for (const float value : {NAN, -NAN})
    EXPECT_EQ(said(value),
              "[train] rank 1: gradient of bn.weight is nan at element 1 (step 7); "
              "a lower learning rate may help");
  EXPECT_NE(said(-INFINITY).find("is -inf at"), std::string::npos);
}

// test vectors of the FNV reference code (Fowler, Noll, Vo)
TEST(Hash, MatchesKnownAnswers) {
  EXPECT_EQ(Hash().value(), 0xcbf29ce484222325ull);
  EXPECT_EQ(Hash().add("a").value(), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(Hash().add("foobar").value(), 0x85944171f73967e8ull);
  EXPECT_EQ(Hash().add("foo").add("bar").value(), Hash().add("foobar").value());
}

TEST(Hash, DistinguishesPlusAndMinusZero) {
  const std::vector<float> plus{0.0f}, minus{-0.0f};
  EXPECT_NE(Hash().add(std::span(plus)).value(), Hash().add(std::span(minus)).value());
}

}  // namespace
}  // namespace tw::test
