// Two blocks of a message are in flight at a time.

#include "comm/transports/double_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace tw {
namespace {

TEST(DoubleBuffer, StartsTheNextBlockBeforeItFinishesOne) {
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
