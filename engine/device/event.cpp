#include "engine/device/event.h"

#include "engine/core/stopwatch.h"

namespace tw {

std::unique_ptr<Event> Event::create(Context& ctx) { return event_dispatch(ctx.device()); }

std::unique_ptr<DeviceTimer> DeviceTimer::create(Context& ctx) {
  return device_timer_dispatch(ctx.device(), ctx);
}

namespace {

class CpuEvent final : public Event {
 public:
  void record(Context&) override {}
  void make_wait(Context&) override {}
};

class ClockTimer : public DeviceTimer {
 public:
  void start() override { watch_.lap(); }
  double stop() override { return watch_.lap(); }

 private:
  Stopwatch watch_;
};

const bool event_registered = event_dispatch.add<CpuEvent>(Device::cpu);
const bool device_timer_registered = device_timer_dispatch.add<ClockTimer>(Device::cpu);

}  // namespace
}  // namespace tw
