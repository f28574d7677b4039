#include "engine/device/event.h"

namespace tw {

constinit DispatchTable<std::unique_ptr<Event>()> event_dispatch{"event"};

std::unique_ptr<Event> Event::create(Context& ctx) { return event_dispatch(ctx.device()); }

namespace {

class CpuEvent final : public Event {
 public:
  void record(Context&) override {}
  void make_wait(Context&) override {}
};

const bool event_registered = event_dispatch.add(
    Device::cpu, []() -> std::unique_ptr<Event> { return std::make_unique<CpuEvent>(); });

}  // namespace
}  // namespace tw
