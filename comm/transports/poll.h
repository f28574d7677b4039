// Short sleeps that end on time.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tw {

/// Sleeps until `time`. The kernel rounds sleeps up by 50 us unless a thread wants them exact.
inline void nap_until(std::chrono::steady_clock::time_point time) {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
  (void)exact;
  std::this_thread::sleep_until(time);
}

/// Calls test() `at_first` times, then `after_nap` times after each of a row of naps, until it is
/// true; false when `deadline` comes first. Naps grow with the time waited: at most an eighth late,
/// and a long wait costs next to nothing.
template <class Test>
bool poll_until(std::chrono::steady_clock::time_point deadline, int at_first, int after_nap,
                const Test& test) {
  using std::chrono::microseconds;
  constexpr microseconds kFirstNap{20}, kLongestNap{200};
  const auto holds = [&](int times) {
    for (int i = 0; i < times; ++i)
      if (test()) return true;
    return false;
  };
  if (holds(at_first)) return true;
  for (microseconds time = kFirstNap; std::chrono::steady_clock::now() <= deadline;
       time = std::min(time + time / 8, kLongestNap)) {
    nap_until(std::chrono::steady_clock::now() + time);
    if (holds(after_nap)) return true;
  }
  return false;
}

}  // namespace tw
