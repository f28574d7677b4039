#include "engine/device/device_timer.h"

#include "engine/core/stopwatch.h"

namespace tw {

constinit DispatchTable<std::unique_ptr<DeviceTimer>(Context&)> device_timer_dispatch{
    "device_timer"};

std::unique_ptr<DeviceTimer> DeviceTimer::create(Context& ctx) {
  return device_timer_dispatch(ctx.device(), ctx);
}

namespace {

class ClockTimer : public DeviceTimer {
 public:
  void start() override { watch_.lap(); }
  double stop() override { return watch_.lap(); }

 private:
  Stopwatch watch_;
};

const bool device_timer_registered = device_timer_dispatch.add(
    Device::cpu,
    [](Context&) -> std::unique_ptr<DeviceTimer> { return std::make_unique<ClockTimer>(); });

}  // namespace

}  // namespace tw
