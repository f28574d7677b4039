// DeviceTimer: seconds that a device spends on what is queued between two moments.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  /// On a GPU by events on the stream of ctx, which outlives the timer; on the CPU the clock.
  static std::unique_ptr<DeviceTimer> create(Context& ctx);

  virtual void start() = 0;
  /// Waits for what was queued since start(); its seconds.
  virtual double stop() = 0;
};

extern DispatchTable<std::unique_ptr<DeviceTimer>(Context&)> device_timer_dispatch;

}  // namespace tw
