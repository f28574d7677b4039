// Values as multiples of a scale: the examples are worked out by hand.

#include "sparsify/encoding/scaled_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/core/rng.h"

namespace tw {
namespace {

using Format = ValueFormat;
using Floats = std::vector<float>;
constexpr Format kScaled[] = {Format::int8, Format::int4, Format::int2, Format::sign};

Floats rounded_values(Format format, Floats values, size_t block = 64) {
  ScaledValues(format, block).round(values);
  return values;
}

/// The bytes after the scales, of which there are `scales`.
std::vector<int> packed_values(Format format, const Floats& rounded, size_t scales = 1) {
  const ScaledValues coding(format, 64);
  std::vector<std::byte> bytes(coding.bytes(rounded.size()));
  coding.write(rounded, bytes.data());
  std::vector<int> packed;
  for (size_t i = 4 * scales; i < bytes.size(); ++i) packed.push_back(static_cast<int>(bytes[i]));
  return packed;
}

// largest / 128 = 3
TEST(ScaledValues, RoundInt8ToA128thOfTheLargest) {
  EXPECT_EQ(rounded_values(Format::int8, {384, 1, -100, 5}), Floats({384, 3, -99, 6}));
  EXPECT_EQ(packed_values(Format::int8, {384, 3, -99, 6}), std::vector<int>({127, 0, 160, 1}));
}

// largest / 8 = 2
TEST(ScaledValues, RoundInt4ToTheNearestOfEightMultiples) {
  EXPECT_EQ(rounded_values(Format::int4, {16, 0.5f, -9, 4.9f}), Floats({16, 2, -10, 4}));
  EXPECT_EQ(packed_values(Format::int4, {16, 2, -10, 4}), std::vector<int>({0xc7, 0x10}));
}

// largest / 2 = 1.5 in the first, the mean of 2.125 without its last bit in the second
TEST(ScaledValues, RoundInt2ToOneOrTwoScales) {
  EXPECT_EQ(rounded_values(Format::int2, {1, 2.5f, 2, -3}), Floats({1.5f, 3, 1.5f, -3}));
  EXPECT_EQ(packed_values(Format::int2, {1.5f, 3, 1.5f, -3}), std::vector<int>({0xc4}));
  EXPECT_EQ(rounded_values(Format::int2, {1, 1, 1, 1, 1, -1, 1, 10}),
            Floats({2, 2, 2, 2, 2, -2, 2, 4}));
}

TEST(ScaledValues, RoundSignsToTheMeanOfAllMagnitudes) {
  Floats values(200, 1.0f);
  values[130] = -201;  // mean 2
  Floats expected(200, 2.0f);
  expected[130] = -2;
  EXPECT_EQ(rounded_values(Format::sign, values), expected);
  EXPECT_EQ(ScaledValues(Format::sign, 64).bytes(200), 4u + 25u);
  EXPECT_EQ(packed_values(Format::sign, {2, -2, 2, -2}), std::vector<int>({0x0a}));
}

// 1 + 1/256 has nine significant bits, 1 + 1/16 five
TEST(ScaledValues, HaveShortScales) {
  EXPECT_EQ(rounded_values(Format::int8, {128.5f}), Floats({128}));
  EXPECT_EQ(rounded_values(Format::int4, {8.5f}), Floats({8}));
  EXPECT_EQ(rounded_values(Format::int2, {2.125f}), Floats({2}));
  EXPECT_EQ(rounded_values(Format::sign, {1.0625f}), Floats({1}));
}

TEST(ScaledValues, HaveAScaleForEachBlock) {
  Floats values(64, 8.0f);
  values.push_back(-1);
  const ScaledValues coding(Format::int4, 64);
  EXPECT_EQ(coding.bytes(values.size()), 2 * 4u + 33u);
  EXPECT_EQ(rounded_values(Format::int4, values), values);
  EXPECT_EQ(rounded_values(Format::int4, values, 128).back(), -1) << "the scale of 8 is 1";
  values.back() = 0.1f;
  EXPECT_NEAR(rounded_values(Format::int4, values).back(), 0.1f, 0.01f);
  EXPECT_EQ(rounded_values(Format::int4, values, 128).back(), 1);
}

/// Magnitudes as after a selection, near zero, and with outliers.
Floats drawn(size_t n, uint32_t kind) {
  const Philox philox(kind, Purpose::test);
  Floats values(n);
  for (size_t i = 0; i < n; ++i) {
    const auto r = philox(i);
    const float x = normal(r[0], r[1])[0];
    values[i] = kind == 0 ? std::copysign(3 + std::abs(x), x) : kind == 1 ? x : x * x * x * x * x;
  }
  return values;
}

TEST(ScaledValues, AreNearerThanZeroAndStayWhenRoundedAgain) {
  for (const Format format : kScaled)
    for (const uint32_t kind : {0, 1, 2})
      for (const size_t n : {1, 2, 63, 64, 65, 128, 1000, 4097}) {
        const ScaledValues coding(format, 64);
        const Floats values = drawn(n, kind);
        Floats rounded = values;
        coding.round(rounded);
        const size_t block = format == Format::sign ? n : 64;
        for (size_t begin = 0; begin < n; begin += block) {
          double error = 0, norm = 0;
          for (size_t i = begin; i < std::min(n, begin + block); ++i) {
            EXPECT_EQ(std::signbit(rounded[i]), std::signbit(values[i]));
            error += std::pow(double{values[i]} - rounded[i], 2);
            norm += std::pow(double{values[i]}, 2);
          }
          EXPECT_LT(error, norm);
        }
        Floats again = rounded, read(n);
        coding.round(again);
        EXPECT_EQ(again, rounded);
        std::vector<std::byte> bytes(coding.bytes(n));
        coding.write(rounded, bytes.data());
        coding.read(bytes.data(), read);
        EXPECT_EQ(read, rounded) << name(format) << " " << n;
      }
}

// 2.25 of a scale of 1 is 2 three times of four; below the scale are no neighbours
TEST(ScaledValues, DrawsKeepTheMean) {
  Floats values(128, -2.25f);
  values[0] = values[64] = 8;
  values[1] = values[65] = 0.5f;
  const ScaledValues coding(Format::int4, 64);
  const auto drawn_values = [&](uint64_t seed, uint64_t message) {
    Floats rounded = values;
    coding.round(rounded, RoundingDraws{Philox(seed, Purpose::rounding), message});
    return rounded;
  };
  std::vector<double> sums(values.size());
  constexpr int kMessages = 4000;
  for (uint64_t message = 0; message < kMessages; ++message) {
    const Floats rounded = drawn_values(5, message);
    for (size_t i = 0; i < rounded.size(); ++i) sums[i] += rounded[i];
    EXPECT_EQ(rounded[0], 8);
    EXPECT_EQ(rounded[1], 1);
    EXPECT_TRUE(rounded[2] == -2 || rounded[2] == -3) << rounded[2];
    Floats again = rounded;
    coding.round(again);
    ASSERT_EQ(again, rounded);
    EXPECT_FALSE(std::equal(rounded.begin(), rounded.begin() + 64, rounded.begin() + 64));
  }
  // five standard errors of a draw of variance 3/16
  for (size_t i = 2; i < 64; ++i)
    EXPECT_NEAR(sums[i] / kMessages, values[i], 5 * std::sqrt(3.0 / 16 / kMessages)) << i;
  EXPECT_EQ(drawn_values(5, 1), drawn_values(5, 1));
  EXPECT_NE(drawn_values(5, 1), drawn_values(5, 2));
  EXPECT_NE(drawn_values(5, 1), drawn_values(6, 1));
}

// 128 + 0.999999 is 129 in f32
TEST(ScaledValues, DrawsKeepTheLargest) {
  Floats values(1 << 20, 128.0f);
  ScaledValues(Format::int8, 64).round(values, RoundingDraws{Philox(1, Purpose::rounding)});
  EXPECT_EQ(std::ranges::count(values, 128.0f), std::ssize(values));
}

TEST(ScaledValues, KeepTheEndsOfTheRangeOfFloats) {
  const float least = std::numeric_limits<float>::denorm_min();
  for (const Format format : kScaled)
    for (Floats values : {Floats{FLT_MAX, -FLT_MAX}, Floats{FLT_MIN, -FLT_MIN, FLT_MIN / 2},
                          Floats{3 * least, -15 * least, least}, Floats{0, 0, 0}}) {
      const ScaledValues coding(format, 64);
      coding.round(values);
      Floats read(values.size());
      std::vector<std::byte> bytes(coding.bytes(values.size()));
      coding.write(values, bytes.data());
      coding.read(bytes.data(), read);
      EXPECT_EQ(read, values);
      EXPECT_TRUE(std::ranges::all_of(read, [](float x) { return std::isfinite(x) && x != 0; }));
    }
}

}  // namespace
}  // namespace tw
