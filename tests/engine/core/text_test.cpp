#include "engine/core/text.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

using Parts = std::vector<std::string>;

TEST(Text, HasNoEmptyPartAtItsEnd) {
  EXPECT_EQ(split("", ','), Parts{});
  EXPECT_EQ(split("a,,bc", ','), (Parts{"a", "", "bc"}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a"}));
}

TEST(Text, IsANumberAsAWhole) {
  EXPECT_EQ(number_in<int64_t>("-12"), -12);
  EXPECT_EQ(number_in<double>("1e-310"), 1e-310);
  for (const char* wrong : {"", "1x", " 1", "+1", "99999999999999999999"})
    EXPECT_EQ(number_in<int64_t>(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace tw
