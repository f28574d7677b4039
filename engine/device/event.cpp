#include "engine/device/event.h"

namespace tw {

constinit Bodies<std::unique_ptr<Event>()> event_bodies{"event"};

std::unique_ptr<Event> Event::create(Context& ctx) { return event_bodies(ctx.device()); }

namespace {

class CpuEvent final : public Event {
 public:
  void record(Context&) override {}
  void hold(Context&) override {}
};

const bool registered = event_bodies.add(
    Device::cpu, []() -> std::unique_ptr<Event> { return std::make_unique<CpuEvent>(); });

}  // namespace
}  // namespace tw
