#include "engine/device_timer.h"

#include <chrono>

namespace tw {

constinit Bodies<std::unique_ptr<DeviceTimer>(Context&)> device_timer_bodies{"timer"};

std::unique_ptr<DeviceTimer> DeviceTimer::create(Context& ctx) {
  return device_timer_bodies(ctx.device(), ctx);
}

namespace {

class ClockTimer : public DeviceTimer {
 public:
  void start() override { start_ = Clock::now(); }
  double stop() override { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

const bool registered = device_timer_bodies.add(
    Device::cpu,
    [](Context&) -> std::unique_ptr<DeviceTimer> { return std::make_unique<ClockTimer>(); });

}  // namespace

}  // namespace tw
