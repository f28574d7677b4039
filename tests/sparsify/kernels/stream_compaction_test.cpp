#include "sparsify/kernels/stream_compaction.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/core/rng.h"
#include "sparsify/kernels/magnitude.h"

namespace tw {
namespace {

TEST(Compact, AllImplementationsGiveTheSameBits) {
  const Philox philox(1, Purpose::test);
  for (size_t n : {0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 4096})
    for (uint32_t min_bits : {0u, 1u, magnitude_bits(0.5f), magnitude_bits(1.9f), kInfinityBits})
      for (bool add : {true, false}) {
        std::vector<float> g(n), e1(n), v1(n), v2(v1);
        std::vector<uint32_t> i1(n), i2(i1);
        for (size_t i = 0; i < n; ++i) {
          g[i] = uniform(philox(i)[0]) * 2 - 1;
          e1[i] = philox(i)[2] % 16 == 0 ? -g[i] : uniform(philox(i)[1]) * 2 - 1;
        }
        std::vector<float> e2(e1);
        const float* gradient = add ? g.data() : nullptr;
        const size_t c1 =
            add_and_compact(gradient, e1.data(), n, min_bits, 7, {i1.data(), v1.data()});
        const size_t c2 =
            add_and_compact_portable(gradient, e2.data(), n, min_bits, 7, {i2.data(), v2.data()});
        ASSERT_EQ(c1, c2) << n << " " << min_bits;
        size_t expected = 0;
        for (size_t i = 0; i < n; ++i) {
          if (magnitude_bits(e1[i]) < min_bits) continue;
          EXPECT_EQ(i1[expected], i + 7);
          EXPECT_EQ(v1[expected], e1[i]);
          ++expected;
        }
        EXPECT_EQ(c1, expected);
        i1.resize(c1), i2.resize(c1), v1.resize(c1), v2.resize(c1);
        EXPECT_EQ(e1, e2);
        EXPECT_EQ(i1, i2);
        EXPECT_EQ(v1, v2);
      }
}

TEST(Magnitude, BitsOrderLikeMagnitudes) {
  EXPECT_LT(magnitude_bits(0.0f), magnitude_bits(-0x1p-149f));
  EXPECT_LT(magnitude_bits(1.0f), magnitude_bits(-1.5f));
  EXPECT_EQ(magnitude_bits(-0.0f), 0u);
}

TEST(LogHistogram, CutsWhereTheCountReachesK) {
  LogHistogram histogram;
  histogram.clear();
  for (float x : {8.0f, 4.0f, 4.01f, 4.02f, 1.0f}) histogram.add(magnitude_bits(x));
  EXPECT_EQ(histogram.cut(1).edge, magnitude_bits(8.0f));
  EXPECT_EQ(histogram.cut(2).edge, magnitude_bits(4.0f));
  EXPECT_EQ(histogram.cut(4).above, 1u);
  EXPECT_EQ(histogram.cut(5).edge, magnitude_bits(1.0f));
  EXPECT_EQ(histogram.cut(6).edge, 0u);
}

}  // namespace
}  // namespace tw
