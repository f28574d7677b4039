// WaitLimit: how long a wait may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tw {

/// The end of a wait that begins with the constructor. Time in which this process did not run does
/// not count: a run that Ctrl-Z or `docker pause` stops must not time out when it continues.
class WaitLimit {
 public:
  using Clock = std::chrono::steady_clock;
  /// A wait looks at least this often, so that a longer pause is known as one.
  static constexpr std::chrono::milliseconds kLook{100};

  /// Ends after `length`; 0: never.
  explicit WaitLimit(std::chrono::duration<double> length, Clock::time_point now = Clock::now())
      : looked_(now) {
    if (length.count() > 0) end_ = now + std::chrono::round<Clock::duration>(length);
  }

  bool passed(Clock::time_point now = Clock::now()) {
    const Clock::duration pause = now - looked_;
    if (pause > kStopped && end_ != Clock::time_point::max()) end_ += pause;
    looked_ = now;
    return now > end_;
  }

  /// The time by which to call passed().
  Clock::time_point next_look() const { return std::min(end_, looked_ + kLook); }

 private:
  static constexpr std::chrono::seconds kStopped{1};

  Clock::time_point looked_, end_ = Clock::time_point::max();
};

/// Waits until `over` holds; false when the limit passes first.
template <class Over>
bool wait_within(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                 WaitLimit& limit, const Over& over) {
  while (!changed.wait_until(lock, limit.next_look(), over))
    if (limit.passed()) return false;
  return true;
}

}  // namespace tw
