// Philox against Random123's known answers; separate streams; the distributions drawn from it.
#include "engine/core/rng.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tw::test {
namespace {

using Block = Philox::Block;

// kat_vectors of Random123 (Salmon et al., SC 2011)
TEST(Philox, MatchesKnownAnswers) {
  constexpr uint32_t ff = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({ff, ff, ff, ff}, {ff, ff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryPartOfCounterAndKeyMatters) {
  std::set<Block> seen;
  size_t drawn = 0;
  const auto draw = [&](const Philox& philox, uint64_t id, uint32_t index) {
    seen.insert(philox(id, index));
    ++drawn;
  };
  draw(Philox(1, Purpose::init), 0, 0);
  draw(Philox(2, Purpose::init), 0, 0);
  draw(Philox(1 + (uint64_t{1} << 32), Purpose::init), 0, 0);
  draw(Philox(1 + (uint64_t{1} << 63), Purpose::init), 0, 0);
  draw(Philox(1, Purpose::shuffle), 0, 0);
  draw(Philox(1, Purpose::test), 0, 0);
  draw(Philox(1, Purpose::init, 1), 0, 0);
  draw(Philox(1, Purpose::init), 1, 0);
  draw(Philox(1, Purpose::init), uint64_t{1} << 32, 0);
  draw(Philox(1, Purpose::init), 0, 1);
  EXPECT_EQ(seen.size(), drawn);
}

TEST(Philox, IsReproducibleAlsoAtCompileTime) {
  constexpr Block fixed = Philox(7, Purpose::augment, 3)(12345, 6);
  const Philox philox(7, Purpose::augment, 3);
  philox(1);  // no state: what was drawn before does not matter
  EXPECT_EQ(philox(12345, 6), fixed);
}

TEST(Uniform, LiesInTheHalfOpenInterval) {
  EXPECT_EQ(uniform(0), 0.0f);
  EXPECT_LT(uniform(0xffffffff), 1.0f);
  EXPECT_EQ(uniform(0x80000000), 0.5f);
}

TEST(Below, StaysBelowAndReachesBothEnds) {
  for (const uint32_t n : {1u, 2u, 3u, 10u, 50'000u, 0xffffffffu}) {
    EXPECT_EQ(below(0, n), 0u);
    EXPECT_EQ(below(0xffffffff, n), n - 1);
  }
}

TEST(Normal, IsFiniteForEveryExtremeWord) {
  for (const uint32_t a : {0u, 1u, 0xfffffffeu, 0xffffffffu})
    for (const uint32_t b : {0u, 1u, 0x80000000u, 0xffffffffu})
      for (const float value : normal(a, b)) EXPECT_TRUE(std::isfinite(value)) << a << " " << b;
}

TEST(Normal, HasTheMomentsOfTheNormalDistribution) {
  constexpr size_t kBlocks = 100'000;
  const Philox philox(3, Purpose::test);
  double first = 0, second = 0, fourth = 0, product = 0, tail = 0;
  for (size_t i = 0; i < kBlocks; ++i) {
    const Block bits = philox(i);
    const auto [x, y] = normal(bits[0], bits[1]);
    for (const double z : {x, y}) {
      first += z;
      second += z * z;
      fourth += z * z * z * z;
      tail += std::abs(z) > 1.959964;
    }
    product += double{x} * double{y};
  }
  const double n = 2.0 * kBlocks;
  // five standard errors of each estimate
  EXPECT_NEAR(first / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(second / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(product / kBlocks, 0, 5 / std::sqrt(kBlocks));
  EXPECT_NEAR(tail / n, 0.05, 5 * std::sqrt(0.05 * 0.95 / n));
}

TEST(Philox, EachBitIsOneInHalfOfTheDraws) {
  constexpr int kBlocks = 20'000;
  std::vector<int> ones(128);
  for (int i = 0; i < kBlocks; ++i) {
    const Block bits = Philox(9, Purpose::select)(static_cast<uint64_t>(i));
    for (size_t j = 0; j < ones.size(); ++j) ones[j] += (bits[j / 32] >> (j % 32)) & 1;
  }
  for (const int count : ones) EXPECT_NEAR(count, kBlocks / 2, 5 * std::sqrt(kBlocks) / 2);
}

}  // namespace
}  // namespace tw::test
