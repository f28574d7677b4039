// Blocks of a vector.

#include "comm/blocks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tw {
namespace {

TEST(Blocks, CoverTheDataOnce) {
  std::vector<int> data(10);
  std::iota(data.begin(), data.end(), 0);
  for (size_t length : {1, 3, 5, 10, 11}) {
    std::vector<int> seen;
    for (size_t j = 0; j < blocks_in(data.size(), length); ++j) {
      const auto block = block_of(std::span(data), length, j);
      EXPECT_FALSE(block.empty());
      seen.insert(seen.end(), block.begin(), block.end());
    }
    EXPECT_EQ(seen, data);
    EXPECT_TRUE(block_of(std::span(data), length, blocks_in(data.size(), length)).empty());
    EXPECT_TRUE(block_of(std::span(data), length, 100).empty());
  }
  EXPECT_EQ(blocks_in(0, 4), 0u);
}

}  // namespace
}  // namespace tw
