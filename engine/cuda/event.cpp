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

class EventTimer final : public DeviceTimer {
 public:
  explicit EventTimer(Context& ctx) : stream_(cuda::stream(ctx)) {}

  void start() override { start_.record(stream_); }
  double stop() override {
    stop_.record(stream_);
    stop_.wait();
    return stop_.seconds_since(start_);
  }

 private:
  cudaStream_t stream_;
  CudaEvent start_{CudaEvent::Timing::on}, stop_{CudaEvent::Timing::on};
};

const bool event_registered = event_dispatch.add<EventOnGpu>(Device::cuda);
const bool device_timer_registered = device_timer_dispatch.add<EventTimer>(Device::cuda);

}  // namespace
}  // namespace tw
