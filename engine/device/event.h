// Event: a point in the work queued on one context that another context can wait for, without
// blocking the host. DeviceTimer: the time between two points.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class Event {
 public:
  virtual ~Event() = default;
  /// An event of ctx's device. On the CPU, which queues nothing, both calls do nothing.
  static std::unique_ptr<Event> create(Context& ctx);

  /// Records the work queued on ctx so far.
  virtual void record(Context& ctx) = 0;
  /// Later work on ctx waits for the recorded event, if there is one.
  virtual void make_wait(Context& ctx) = 0;
};

inline constinit DispatchTable<std::unique_ptr<Event>()> event_dispatch{"event"};

/// Seconds that a device takes for the work queued between start() and stop().
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  /// Uses events on the stream of ctx on a GPU, the wall clock on the CPU. ctx outlives the timer.
  static std::unique_ptr<DeviceTimer> create(Context& ctx);

  virtual void start() = 0;
  /// Waits for the work queued since start() and returns its seconds.
  virtual double stop() = 0;
};
inline constinit DispatchTable<std::unique_ptr<DeviceTimer>(Context&)> device_timer_dispatch{
    "device_timer"};

}  // namespace tw
