#include "sparsify/kernels/stream_compaction.h"

#include <gtest/gtest.h>

#include "engine/core/rng.h"
#include "sparsify/kernels/magnitude.h"

namespace tw {
namespace {

TEST(Compact, AddsAndKeepsWhatReaches) {
  const Philox philox(1, Purpose::test);
  for (size_t n : {0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 4096})
    for (uint32_t min_bits : {0u, 1u, magnitude_bits(0.5f), magnitude_bits(1.9f), kInfinityBits})
      for (bool add : {true, false}) {
        std::vector<float> g(n), e(n), values(n);
        std::vector<uint32_t> indices(n);
        for (size_t i = 0; i < n; ++i) {
          g[i] = uniform(philox(i)[0]) * 2 - 1;
          e[i] = philox(i)[2] % 16 == 0 ? -g[i] : uniform(philox(i)[1]) * 2 - 1;
        }
        std::vector<float> sums(e);
        if (add)
          for (size_t i = 0; i < n; ++i) sums[i] += g[i];
        const size_t count = add_and_compact(add ? g.data() : nullptr, e.data(), n, min_bits, 7,
                                             {indices.data(), values.data()});
        EXPECT_EQ(e, sums);
        size_t expected = 0;
        for (size_t i = 0; i < n; ++i) {
          if (magnitude_bits(sums[i]) < min_bits) continue;
          ASSERT_LT(expected, count);
          EXPECT_EQ(indices[expected], i + 7);
          EXPECT_EQ(values[expected], sums[i]);
          ++expected;
        }
        EXPECT_EQ(count, expected) << n << " " << min_bits;
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
