// Polling with short sleeps.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/wait_limit.h"

namespace tw {

/// Sleeps until `time`. Reduces the thread's timer slack, by which the kernel prolongs sleeps, from
/// 50 us to 1 ns.
inline void nap_until(std::chrono::steady_clock::time_point time) {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
  (void)exact;
  std::this_thread::sleep_until(time);
}

/// Polls test() until it returns true: `at_first` times at once, then `after_nap` times after each
/// short sleep. Returns false when the limit passes first. Sleeps grow from 20 to 200 us with the
/// time waited, so the delay is at most an eighth of the wait and long waits cost little CPU time.
template <class Test>
bool poll_until(WaitLimit& limit, int at_first, int after_nap, const Test& test) {
  using std::chrono::microseconds;
  constexpr microseconds kFirstNap{20}, kLongestNap{200};
  const auto holds = [&](int times) {
    for (int i = 0; i < times; ++i)
      if (test()) return true;
    return false;
  };
  if (holds(at_first)) return true;
  for (microseconds time = kFirstNap; !limit.passed();
       time = std::min(time + time / 8, kLongestNap)) {
    nap_until(std::chrono::steady_clock::now() + time);
    if (holds(after_nap)) return true;
  }
  return false;
}

}  // namespace tw
