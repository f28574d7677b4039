// Stopwatch: wall-clock seconds.
#pragma once

#include <chrono>

namespace tw {

class Stopwatch {
 public:
  /// Seconds since the last lap (or construction); starts the next lap.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }
  /// Seconds since construction.
  double total() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace tw
