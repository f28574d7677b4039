// Consecutive chunks around the end of a vector.

#include "comm/collectives/wrapped_range.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tw {
namespace {

TEST(WrappedRange, HoldsTheChunksInOrderAroundTheEnd) {
  for (const size_t n : {0, 3, 10, 23})
    for (const int parts : {1, 2, 3, 7})
      for (int from = 0; from < 2 * parts; ++from)
        for (int count = 0; count <= parts; ++count) {
          std::vector<int> data(n);
          std::iota(data.begin(), data.end(), 0);
          std::vector<int> expected, seen;
          for (int i = 0; i < count; ++i) {
            const int c = (from + i) % parts;
            for (const int x : chunks(std::span(data), parts, c, c + 1)) expected.push_back(x);
          }
          const WrappedRange<int> range(data, parts, from, count);
          seen.assign(range.first.begin(), range.first.end());
          seen.insert(seen.end(), range.second.begin(), range.second.end());
          EXPECT_EQ(seen, expected) << n << " in " << parts << ", " << count << " from " << from;
          EXPECT_EQ(range.size(), expected.size());
          if (range.contiguous()) {
            EXPECT_TRUE(std::ranges::equal(range.whole(), expected));
          }
        }
}

}  // namespace
}  // namespace tw
