#include "comm/link/link_clock.h"

#include <algorithm>
#include <chrono>

#include "comm/transports/poll.h"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kForgiven = 0.01;  // seconds

/// The system wakes a sleeper late, which is no property of the link. So this clock goes on from
/// the moment it was to wake at: what it was late by is not added up from message to message, and
/// durations are right to within what the last sleep was late.
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
