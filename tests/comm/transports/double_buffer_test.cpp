// Long messages in blocks, two of which are under way.

#include "comm/transports/double_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
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

TEST(Blocks, OfTwoStagesPassData) {
  for (size_t count : {0, 1, 2, 3, 7}) {
    std::array<size_t, 2> stage{};
    std::string order;
    std::vector<size_t> arrived;
    double_buffered(
        count,
        [&](size_t j, int place) {
          stage.at(static_cast<size_t>(place)) = j;
          order += '(';
        },
        [&](size_t, int place) {
          arrived.push_back(stage.at(static_cast<size_t>(place)));
          order += ')';
        });
    std::vector<size_t> expected(count);
    std::iota(expected.begin(), expected.end(), size_t{0});
    EXPECT_EQ(arrived, expected);
    if (count == 3) {
      EXPECT_EQ(order, "(()())");
    }
  }
}

}  // namespace
}  // namespace tw
