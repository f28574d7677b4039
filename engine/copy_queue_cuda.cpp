#include <array>

#include "engine/copy_queue.h"
#include "engine/cuda.h"

namespace tw {
namespace {

/// A stream of its own, whose copies the GPU's copy engines do while kernels run.
class CudaCopies final : public CopyQueue {
 public:
  CudaCopies() {
    cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "copy stream");
    for (cudaEvent_t& event : events_)
      cuda::expect(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "copy stream");
  }
  // nothing is checked: what is left of a failed run is the process's end to clean up
  ~CudaCopies() override {
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t event : events_)
      if (event != nullptr) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;

  void copy(const void* from, void* to, size_t bytes) override {
    if (bytes == 0) return;
    cuda::expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }
  void wait_for(Context& ctx) override { order(cuda::stream(ctx), stream_); }
  void hold(Context& ctx) override { order(stream_, cuda::stream(ctx)); }
  void mark(int place) override {
    cuda::expect(cudaEventRecord(events_.at(place), stream_), "copy");
  }
  // an event that was never recorded counts as done
  void wait(int place) override { cuda::expect(cudaEventSynchronize(events_.at(place)), "copy"); }

 private:
  /// What `second` is given from now on comes behind what `first` was given.
  void order(cudaStream_t first, cudaStream_t second) {
    cudaEvent_t& here = events_.back();
    cuda::expect(cudaEventRecord(here, first), "copy");
    cuda::expect(cudaStreamWaitEvent(second, here, 0), "copy");
  }

  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kMarks + 1> events_{};  // the last one is order()'s
};

const bool registered = copy_queue_bodies.add(
    Device::cuda,
    [](Context&) -> std::unique_ptr<CopyQueue> { return std::make_unique<CudaCopies>(); });

}  // namespace
}  // namespace tw
