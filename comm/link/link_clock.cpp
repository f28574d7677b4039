#include "comm/link/link_clock.h"

#include <algorithm>
#include <chrono>

#include "comm/transports/poll.h"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kForgiven = 0.01;  // seconds

/// The system wakes sleeping threads late, which is not a property of the link. This clock
/// continues from the requested wake-up time, so delays do not add up from message to message:
/// durations are off by at most the delay of the last sleep.
class RealClock : public LinkClock {
 public:
  double now() const override { return wall() - late_; }

  void wait_until(double time) override {
    if (time <= now()) return;
    const std::chrono::duration<double> since_epoch(time);
    nap_until(Clock::time_point(std::chrono::duration_cast<Clock::duration>(since_epoch)));
    late_ = std::clamp(wall() - time, 0.0, kForgiven);
  }

 private:
  static double wall() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }
  double late_ = 0;
};

class SimulatedClock : public LinkClock {
 public:
  double now() const override { return now_; }
  void wait_until(double time) override { now_ = std::max(now_, time); }

 private:
  double now_ = 0;
};

}  // namespace

std::unique_ptr<LinkClock> make_link_clock(LinkTime time) {
  if (time == LinkTime::real) return std::make_unique<RealClock>();
  return std::make_unique<SimulatedClock>();
}

}  // namespace tw
