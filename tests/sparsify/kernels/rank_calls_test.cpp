// The threads of RankCalls meet no data race, which the thread sanitizer checks, and none sleeps
// on.
#include "sparsify/kernels/rank_calls.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <functional>
#include <future>

#include "tests/support/error_text.h"

namespace tw {
namespace {

constexpr int kRanks = 4;
constexpr uint64_t kCalls = 300;

TEST(RankCalls, AllRanksSeeWhatTheFirstPrepares) {
  RankCalls calls("test", kRanks);
  std::barrier round(kRanks);
  uint64_t prepared = 0;  // without a lock of its own
  std::vector<std::future<uint64_t>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      uint64_t wrong = 0;
      for (uint64_t call = 1; call <= kCalls; ++call) {
        wrong += calls.bytes() > call * (call + 1) / 2;  // while others prepare
        calls.begin(rank, [&] { return prepared = call; });
        wrong += prepared != call || calls.bytes() != call * (call + 1) / 2;
        calls.end();
        round.arrive_and_wait();
      }
      return wrong;
    }));
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), 0u);
}

/// Calls begin on rank 1 while rank 0 prepares, and ends the preparation when rank 1 waits.
std::future<void> begin_behind(RankCalls& calls, const std::function<uint64_t()>& end) {
  std::future<void> second;
  calls.begin(0, [&] {
    second =
        std::async(std::launch::async, [&calls] { calls.begin(1, [] { return uint64_t{1}; }); });
    // it has not returned, whatever the time; after this it sleeps, on all but an overloaded
    // machine
    EXPECT_EQ(second.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
    return end();
  });
  return second;
}

TEST(RankCalls, WakeTheRanksThatWait) {
  RankCalls calls("test", 2);
  std::future<void> second = begin_behind(calls, [] { return uint64_t{5}; });
  const bool woken = second.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  if (!woken) {
    ADD_FAILURE() << "a rank sleeps on";
    std::quick_exit(1);  // the thread cannot be joined
  }
  second.get();
  EXPECT_EQ(calls.bytes(), 5u);
}

TEST(RankCalls, TellTheOthersThatTheFirstHasFailed) {
  RankCalls calls("test", 2);
  EXPECT_THROW(calls.begin(0, []() -> uint64_t { throw Fault("first"); }), Fault);
  EXPECT_EQ(test::error_text<Fault>([&] { calls.begin(1, [] { return uint64_t{1}; }); }),
            "[test] another rank could not upload the entries");
  EXPECT_EQ(calls.bytes(), 0u);
}

TEST(RankCalls, RefuseARankThatOvertakesAnother) {
  RankCalls calls("test", 2);
  const auto prepare = [] { return uint64_t{1}; };
  calls.begin(0, prepare);
  calls.end();
  EXPECT_THROW(calls.begin(0, prepare), std::logic_error);
}

}  // namespace
}  // namespace tw
