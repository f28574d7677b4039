// DeviceTimer: seconds a device takes for the work queued between start() and stop().
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  /// Uses events on the stream of ctx on a GPU, the wall clock on the CPU. ctx outlives the timer.
  static std::unique_ptr<DeviceTimer> create(Context& ctx);

  virtual void start() = 0;
  /// Waits for the work queued since start() and returns its seconds.
  virtual double stop() = 0;
};

extern DispatchTable<std::unique_ptr<DeviceTimer>(Context&)> device_timer_dispatch;

}  // namespace tw
