// LinkClock: the real or simulated clock of an emulated link.
#pragma once

#include <memory>

namespace tw {

enum class LinkTime {
  real,      ///< sleeps for as long as the messages would take
  simulated  ///< never sleeps: each rank counts its own time, and messages carry it along
};

class LinkClock {
 public:
  virtual ~LinkClock() = default;
  /// Seconds. Real time is the same on all ranks of a machine; simulated time starts at 0.
  virtual double now() const = 0;
  /// Returns at `time`, or at once when that has passed.
  virtual void wait_until(double time) = 0;
};

std::unique_ptr<LinkClock> make_link_clock(LinkTime time);

}  // namespace tw
