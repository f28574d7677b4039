#include "engine/device/device_timer.h"

#include "engine/cuda/cuda_event.h"

namespace tw {
namespace {

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

const bool device_timer_registered = device_timer_dispatch.add(
    Device::cuda,
    [](Context& ctx) -> std::unique_ptr<DeviceTimer> { return std::make_unique<EventTimer>(ctx); });

}  // namespace
}  // namespace tw
