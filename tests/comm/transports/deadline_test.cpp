// Calls that may hang.

#include "comm/transports/deadline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace tw {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, ACallThatEndsInTimeIsReportedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(run_with_deadline(60s, [] {}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST(Deadline, ALateCallIsLeftRunning) {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  EXPECT_FALSE(run_with_deadline(20ms, [release, ended] {
    while (!*release) std::this_thread::sleep_for(1ms);
    *ended = true;
  }));
  EXPECT_FALSE(*ended);
  *release = true;
  while (!*ended) std::this_thread::sleep_for(1ms);
}

TEST(Deadline, ACallOnThisThreadIsWatchedByAnother) {
  std::atomic<bool> late = false;
  const auto here = std::this_thread::get_id();
  const auto set_late = [&] { late = true; };
  run_with_deadline(
      60s, [&] { EXPECT_EQ(std::this_thread::get_id(), here); }, set_late);
  EXPECT_FALSE(late);
  run_with_deadline(
      10ms,
      [&] {
        while (!late) std::this_thread::sleep_for(1ms);
      },
      set_late);
  EXPECT_TRUE(late);
}

}  // namespace
}  // namespace tw
