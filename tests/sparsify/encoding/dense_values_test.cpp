// Dense values as multiples of a scale: the examples are worked out by hand.

#include "sparsify/encoding/dense_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tw {
namespace {

using Format = ValueFormat;
using Floats = std::vector<float>;
constexpr Format kDenseFormats[] = {Format::int8, Format::int4, Format::sign};

struct Written {
  std::vector<std::byte> bytes;
  Floats errors;
};

Written written(Format format, Floats values, size_t block = 64,
                const std::optional<RoundingDraws>& draws = {}) {
  Context ctx;
  const DenseValues coding(format, block);
  Written result{std::vector<std::byte>(coding.bytes(values.size())), std::move(values)};
  coding.write(ctx, result.errors, result.bytes.data(), draws);
  return result;
}

Floats read_back(Format format, const Written& message, size_t block = 64) {
  Context ctx;
  Floats values(message.errors.size());
  EXPECT_TRUE(DenseValues(format, block).read(ctx, message.bytes.data(), values));
  return values;
}

Floats dense_rounded(Format format, const Floats& values) {
  return read_back(format, written(format, values));
}

/// The bytes after one scale.
std::vector<int> dense_codes(Format format, const Floats& values) {
  std::vector<int> packed;
  const Written message = written(format, values);
  for (size_t i = 4; i < message.bytes.size(); ++i)
    packed.push_back(static_cast<int>(message.bytes[i]));
  return packed;
}

Floats drawn_floats(size_t n) {
  const Philox philox(1, Purpose::test);
  Floats values;
  for (size_t i = 0; i < n; ++i) values.push_back(normal(philox(i)[0], philox(i)[1])[0]);
  return values;
}

// largest / 127 = 3
TEST(DenseValues, RoundInt8ToA127thOfTheLargest) {
  const Floats values{381, 1, -100, 5, 0};
  EXPECT_EQ(dense_rounded(Format::int8, values), Floats({381, 0, -99, 6, 0}));
  EXPECT_EQ(dense_codes(Format::int8, values), std::vector<int>({127, 0, 256 - 33, 2, 0}));
  EXPECT_EQ(written(Format::int8, values).errors, Floats({0, 1, -1, -1, 0}));
}

// largest / 7 = 2; two values a byte, the first half of them in the lower bits
TEST(DenseValues, RoundInt4ToASeventhOfTheLargest) {
  const Floats values{-14, 0.5f, 9, 4.5f};
  EXPECT_EQ(dense_rounded(Format::int4, values), Floats({-14, 0, 10, 4}));
  EXPECT_EQ(dense_codes(Format::int4, values), std::vector<int>({0x59, 0x20}));
}

TEST(DenseValues, RoundSignsToTheMeanMagnitude) {
  const Floats values{1, -2, 0, 5};
  EXPECT_EQ(dense_rounded(Format::sign, values), Floats({2, -2, 2, 2}));
  EXPECT_EQ(dense_codes(Format::sign, values), std::vector<int>({0x02}));
  EXPECT_EQ(written(Format::sign, values).errors, Floats({-1, 0, -2, 3}));
}

// 1 + 1/256 has nine significant bits, 1 + 1/16 five
TEST(DenseValues, HaveShortScales) {
  EXPECT_EQ(dense_rounded(Format::int8, {127 * 1.00390625f}), Floats({127 * 1.0078125f}));
  EXPECT_EQ(dense_rounded(Format::int4, {7 * 1.0625f}), Floats({7 * 1.125f}));
  EXPECT_EQ(dense_rounded(Format::sign, {1.0625f}), Floats({1}));
}

TEST(DenseValues, HaveAScaleForEachBlockAndKeepTheErrors) {
  for (const Format format : kDenseFormats)
    for (const size_t block : {64, 256})
      for (const size_t n : {0, 1, 63, 64, 65, 255, 256, 257, 200'001}) {
        const Floats values = drawn_floats(n);
        const Written message = written(format, values, block);
        EXPECT_EQ(message.bytes.size(),
                  (n + block - 1) / block * 4 + (n * static_cast<size_t>(bits_of(format)) + 7) / 8);
        const Floats rounded = read_back(format, message, block);
        size_t far = 0, lost = 0;
        for (size_t begin = 0; begin < n; begin += block) {
          const size_t end = std::min(n, begin + block);
          float scale = 0;
          std::memcpy(&scale, &message.bytes[begin / block * 4], sizeof scale);
          for (size_t i = begin; i < end; ++i) {
            // the error of a float of 24 bits and a multiple of 15 may need one bit more
            lost += std::fabs(double{values[i]} - rounded[i] - message.errors[i]) > 1e-7;
            far += format != Format::sign && std::fabs(message.errors[i]) > 0.5001f * scale;
          }
        }
        EXPECT_EQ(lost, 0u) << name(format) << " " << n;
        EXPECT_EQ(far, 0u) << name(format) << " " << n;
      }
}

TEST(DenseValues, AddToWhatIsThere) {
  Context ctx;
  for (const Format format : kDenseFormats) {
    const Written message = written(format, drawn_floats(300));
    Floats sums(300, 2.0f);
    EXPECT_TRUE(DenseValues(format, 64).add(ctx, message.bytes.data(), sums));
    const Floats values = read_back(format, message);
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 2.0f + values[i]);
  }
}

TEST(DenseValues, DoNotDependOnTheNumberOfThreads) {
  for (const bool drawn : {false, true}) {
    const auto message = [&](int threads) {
      Context ctx(Device::cpu, threads);
      const DenseValues coding(Format::int4, 256);
      Floats values = drawn_floats(300'000);
      std::vector<std::byte> bytes(coding.bytes(values.size()));
      std::optional<RoundingDraws> draws;
      if (drawn) draws = {Philox(1, Purpose::rounding), 3};
      coding.write(ctx, values, bytes.data(), draws);
      return bytes;
    };
    EXPECT_EQ(message(1), message(3)) << drawn;
  }
}

// 1.25 of a scale of 1 is 1 three times of four; 0 and the largest stay
TEST(DenseValues, DrawsKeepTheMean) {
  Floats values(64, 1.25f);
  values[0] = 7;
  values[1] = 0;
  values[2] = -0.5f;
  std::vector<double> sums(values.size());
  constexpr int kMessages = 4000;
  for (uint64_t message = 0; message < kMessages; ++message) {
    const RoundingDraws draws{Philox(5, Purpose::rounding), message};
    const Floats rounded = read_back(Format::int4, written(Format::int4, values, 64, draws));
    for (size_t i = 0; i < rounded.size(); ++i) sums[i] += rounded[i];
    EXPECT_EQ(rounded[0], 7);
    EXPECT_EQ(rounded[1], 0);
    EXPECT_TRUE(rounded[2] == 0 || rounded[2] == -1) << rounded[2];
    EXPECT_TRUE(rounded[3] == 1 || rounded[3] == 2) << rounded[3];
  }
  // five standard errors of a draw of variance at most 1/4
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_NEAR(sums[i] / kMessages, values[i], 5 * 0.5 / std::sqrt(kMessages)) << i;
  const RoundingDraws one{Philox(5, Purpose::rounding), 1}, two{Philox(5, Purpose::rounding), 2},
      seed{Philox(6, Purpose::rounding), 1};
  const auto bytes = [&](const RoundingDraws& draws) {
    return written(Format::int4, values, 64, draws).bytes;
  };
  EXPECT_EQ(bytes(one), bytes(one));
  EXPECT_NE(bytes(one), bytes(two));
  EXPECT_NE(bytes(one), bytes(seed));
}

TEST(DenseValues, KeepZerosAndValuesTooSmallForAScale) {
  for (const Format format : kDenseFormats) {
    const Floats tiny{0, 1e-40f, -1e-40f};
    EXPECT_EQ(dense_rounded(format, tiny), Floats({0, 0, 0})) << name(format);
    EXPECT_EQ(written(format, tiny).errors, tiny) << name(format);
  }
}

// the sum of the magnitudes is beyond the range of f32
TEST(DenseValues, SignsOfLargeValuesHaveAFiniteScale) {
  EXPECT_TRUE(std::isfinite(dense_rounded(Format::sign, Floats(64, 3e38f))[0]));
}

// multiple + fraction must not be rounded up to the next whole number
TEST(DenseValues, DrawsKeepZeros) {
  Floats values(size_t{1} << 20, 0.0f);
  for (size_t i = 0; i < values.size(); i += 64) values[i] = 1;
  for (uint64_t message = 0; message < 20; ++message) {
    const RoundingDraws draws{Philox(1, Purpose::rounding), message};
    const Floats rounded = read_back(Format::int8, written(Format::int8, values, 64, draws));
    size_t moved = 0;
    for (size_t i = 0; i < values.size(); ++i) moved += i % 64 != 0 && rounded[i] != 0;
    ASSERT_EQ(moved, 0u);
  }
}

// 127 + fraction may be 128 in f32, which int8 has not
TEST(DenseValues, DrawsKeepTheLargest) {
  const Floats values(size_t{1} << 20, 127.0f);  // a scale of 1
  for (uint64_t message = 0; message < 4; ++message) {
    const RoundingDraws draws{Philox(1, Purpose::rounding), message};
    ASSERT_EQ(read_back(Format::int8, written(Format::int8, values, 64, draws)), values);
  }
}

TEST(DenseValues, EachHasItsOwnDraw) {
  Floats values(64, 0.5f);
  values[0] = 127;
  const Floats rounded = read_back(
      Format::int8, written(Format::int8, values, 64, RoundingDraws{Philox(1, Purpose::rounding)}));
  const auto up = std::count(rounded.begin(), rounded.end(), 1.0f);
  EXPECT_GT(up, 10);
  EXPECT_EQ(std::count(rounded.begin(), rounded.end(), 0.0f), 63 - up);
  EXPECT_LT(up, 53);
}

TEST(DenseValues, EachBlockHasItsOwnDraws) {
  Floats values(128, 0.5f);
  values[0] = values[64] = 127;
  const Floats rounded = read_back(
      Format::int8, written(Format::int8, values, 64, RoundingDraws{Philox(1, Purpose::rounding)}));
  EXPECT_FALSE(std::equal(rounded.begin(), rounded.begin() + 64, rounded.begin() + 64));
}

TEST(DenseValues, TheReaderRefusesAScaleThatIsNotFinite) {
  Context ctx;
  for (const Format format : kDenseFormats)
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      Floats values = drawn_floats(130);
      values[100] = bad;
      for (const auto& draws : {std::optional<RoundingDraws>(),
                                std::optional(RoundingDraws{Philox(1, Purpose::rounding), 0})}) {
        const Written message = written(format, values, 64, draws);
        Floats read(values.size());
        EXPECT_FALSE(DenseValues(format, 64).read(ctx, message.bytes.data(), read)) << name(format);
        const auto bits = static_cast<size_t>(bits_of(format));
        const auto block = message.bytes.begin() + 3 * 4 + static_cast<long>(64 * bits / 8);
        EXPECT_EQ(std::count(block, block + static_cast<long>(64 * bits / 8), std::byte{0}),
                  static_cast<long>(64 * bits / 8))
            << "the codes of the block";
      }
    }
}

}  // namespace
}  // namespace tw
