// How long a wait may take, by a clock of the test.

#include "comm/wait_limit.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr WaitLimit::Clock::time_point kStart{1h};

TEST(WaitLimit, PassesAfterItsLength) {
  WaitLimit limit(2s, kStart);
  EXPECT_FALSE(limit.passed(kStart + 900ms));
  EXPECT_FALSE(limit.passed(kStart + 1800ms));
  EXPECT_TRUE(limit.passed(kStart + 2001ms));
}

TEST(WaitLimit, NoneNeverPasses) {
  WaitLimit limit(0s, kStart);
  EXPECT_FALSE(limit.passed(kStart + 1000h));
  EXPECT_EQ(limit.next_look(), kStart + 1000h + WaitLimit::kLook);
}

TEST(WaitLimit, DoesNotCountAPauseOfTheProcess) {
  WaitLimit limit(2s, kStart);
  EXPECT_FALSE(limit.passed(kStart + 500ms));
  EXPECT_FALSE(limit.passed(kStart + 60500ms));
  EXPECT_FALSE(limit.passed(kStart + 61400ms));
  EXPECT_TRUE(limit.passed(kStart + 62001ms));
}

TEST(WaitLimit, IsLookedAtOftenAndAtItsEnd) {
  WaitLimit limit(150ms, kStart);
  EXPECT_EQ(limit.next_look(), kStart + 100ms);
  EXPECT_FALSE(limit.passed(kStart + 100ms));
  EXPECT_EQ(limit.next_look(), kStart + 150ms);
}

}  // namespace
}  // namespace tw
