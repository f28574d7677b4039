// The two clocks an emulated link can run on.
#pragma once

#include <memory>

namespace tw {

enum class LinkTime {
  real,      ///< waits for as long as the messages would take
  simulated  ///< waits for nothing: every rank carries its own time, messages carry it on
};

class LinkClock {
 public:
  virtual ~LinkClock() = default;
  /// Seconds; real ones are the same on all ranks of a machine, simulated ones start at 0.
  virtual double now() const = 0;
  /// Returns at `time`; at once when that is past.
  virtual void wait_until(double time) = 0;
};

std::unique_ptr<LinkClock> make_link_clock(LinkTime time);

}  // namespace tw
