#include "sparsify/kernels/moments.h"

#include <gtest/gtest.h>

#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/magnitude.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

TEST(Moments, EqualPlainSums) {
  Context ctx;
  std::vector<Moments> blocks;
  for (size_t n : {1, 7, 8, 9, 4095, 4096, 4097, 100'003}) {
    std::vector<float> g(n), e(n);
    fill_random(ctx, distributions().at("laplace"), 1, g);
    fill_random(ctx, distributions().at("gaussian"), 2, e);
    double sum = 0, square = 0, magnitude = 0, largest = 0;
    for (size_t i = 0; i < n; ++i) {
      const double u = double{g[i] + e[i]};
      sum += u, square += u * u, magnitude += std::abs(u);
      largest = std::max(largest, std::abs(u));
    }
    std::vector<float> u(e);
    const Moments got = add_and_moments(ctx, g, u, blocks);
    EXPECT_NEAR(got.sum, sum, 1e-12 * magnitude);
    EXPECT_NEAR(got.square, square, 1e-12 * square);
    EXPECT_NEAR(got.magnitude, magnitude, 1e-12 * magnitude);
    EXPECT_EQ(double{got.largest}, largest);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(u[i], g[i] + e[i]);

    // without a gradient u is measured as it is, on any number of threads
    Context three(Device::cpu, 3);
    const std::vector<float> before(u);
    const Moments again = add_and_moments(three, {}, u, blocks);
    EXPECT_EQ(again.sum, got.sum);
    EXPECT_EQ(again.square, got.square);
    EXPECT_EQ(again.magnitude, got.magnitude);
    EXPECT_EQ(again.largest, got.largest);
    EXPECT_EQ(u, before);
  }
}

TEST(Tail, EqualsAPlainSum) {
  std::vector<Tail> blocks;
  for (size_t n : {1, 7, 8, 9, 4095, 4096, 4097, 100'003})
    for (float threshold : {1e-3f, 0.5f, 2.0f, 100.0f}) {
      Context one, three(Device::cpu, 3);
      std::vector<float> u(n);
      fill_random(one, distributions().at("laplace"), 1, u);
      u[n / 2] = -threshold;
      double sum = 0;
      size_t count = 0;
      float least = INFINITY;
      for (const float x : u) {
        if (std::abs(x) < threshold) continue;
        sum += std::abs(double{x});
        least = std::min(least, std::abs(x));
        ++count;
      }
      const Tail got = tail_of(one, u, magnitude_bits(threshold), blocks);
      EXPECT_NEAR(got.sum, sum, 1e-12 * sum);
      EXPECT_EQ(got.least, least);
      EXPECT_EQ(got.count, count);
      EXPECT_EQ(tail_of(three, u, magnitude_bits(threshold), blocks).sum, got.sum);
      const Tail none = tail_of(one, u, magnitude_bits(1e30f), blocks);
      EXPECT_EQ(none.count, 0u);
      EXPECT_EQ(none.sum, 0);
    }
}

TEST(Tail, FromCandidatesHasTheBitsOfTheWholeVectors) {
  std::vector<Tail> blocks;
  for (const size_t n : {1, 4096, 100'003})
    for (const int threads : {1, 3}) {
      Context ctx(Device::cpu, threads);
      std::vector<float> u(n);
      fill_random(ctx, distributions().at("laplace"), 1, u);
      const auto candidates = Candidates::create(ctx);
      candidates->collect(ctx, {}, u, magnitude_bits(1.0f));
      for (const float threshold : {0.25f, 1.0f, 2.0f, 100.0f}) {  // the first is below those kept
        const uint32_t bits = magnitude_bits(threshold);
        const Tail got = candidates->tail(ctx, u, bits), expected = tail_of(ctx, u, bits, blocks);
        EXPECT_EQ(got.sum, expected.sum) << n << " " << threshold;
        EXPECT_EQ(got.least, expected.least);
        EXPECT_EQ(got.count, expected.count);
      }
    }
}

TEST(Moments, AreFiniteExactlyForFiniteVectors) {
  Context ctx;
  std::vector<Moments> blocks;
  std::vector<float> e(10'000, -3.4e38f);
  EXPECT_TRUE(add_and_moments(ctx, {}, e, blocks).finite());
  for (float bad : {NAN, INFINITY, -INFINITY})
    for (size_t at : {0, 5000, 9999}) {
      std::vector<float> u(10'000, 1.0f);
      u[at] = bad;
      EXPECT_FALSE(add_and_moments(ctx, {}, u, blocks).finite()) << bad << " at " << at;
    }
}

}  // namespace
}  // namespace tw
