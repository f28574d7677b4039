#include "engine/device/event.h"

#include "engine/cuda/cuda_event.h"

namespace tw {
namespace {

class EventOnGpu final : public Event {
 public:
  void record(Context& ctx) override { event_.record(cuda::stream(ctx)); }
  void make_wait(Context& ctx) override { event_.make_wait(cuda::stream(ctx)); }

 private:
  CudaEvent event_;
};

const bool event_registered = event_dispatch.add(
    Device::cuda, []() -> std::unique_ptr<Event> { return std::make_unique<EventOnGpu>(); });

}  // namespace
}  // namespace tw
