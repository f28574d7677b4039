// Short sleeps that end on time.
#pragma once

#include <sys/prctl.h>

#include <chrono>
#include <thread>

namespace tw {

/// Sleeps until `time`. The kernel rounds sleeps up by 50 us unless a thread wants them exact.
inline void nap_until(std::chrono::steady_clock::time_point time) {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
  (void)exact;
  std::this_thread::sleep_until(time);
}

}  // namespace tw
