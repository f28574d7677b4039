#include "engine/device/device_timer.h"

#include "engine/cuda/cuda.h"

namespace tw {
namespace {

class EventTimer : public DeviceTimer {
 public:
  explicit EventTimer(Context& ctx) : stream_(cuda::stream(ctx)) {
    for (cudaEvent_t& event : events_) cuda::expect(cudaEventCreate(&event), "event");
  }
  ~EventTimer() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void start() override { cuda::expect(cudaEventRecord(events_[0], stream_), "event"); }
  double stop() override {
    cuda::expect(cudaEventRecord(events_[1], stream_), "event");
    cuda::expect(cudaEventSynchronize(events_[1]), "event");
    float milliseconds = 0;
    cuda::expect(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "event");
    return double{milliseconds} * 1e-3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t events_[2] = {};
};

const bool registered = device_timer_dispatch.add(
    Device::cuda,
    [](Context& ctx) -> std::unique_ptr<DeviceTimer> { return std::make_unique<EventTimer>(ctx); });

}  // namespace
}  // namespace tw
