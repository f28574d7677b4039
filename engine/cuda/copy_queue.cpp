#include "engine/device/copy_queue.h"

#include <array>

#include "engine/cuda/cuda_event.h"

namespace tw {
namespace {

/// A stream of its own, whose copies the GPU's copy engines do while kernels run.
class CudaCopies final : public CopyQueue {
 public:
  CudaCopies() {
    cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "copy stream");
  }
  // nothing is checked: what is left of a failed run is the process's end to clean up
  ~CudaCopies() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;

  void copy(const void* from, void* to, size_t bytes) override {
    if (bytes == 0) return;
    cuda::expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
  }
  void wait_for(Context& ctx) override { order(cuda::stream(ctx), stream_); }
  void make_wait(Context& ctx) override { order(stream_, cuda::stream(ctx)); }
  void record(int place) override { records_.at(place).record(stream_); }
  void wait(int place) override { records_.at(place).wait(); }

 private:
  /// What `second` is given from now on comes behind what `first` was given.
  void order(cudaStream_t first, cudaStream_t second) {
    here_.record(first);
    here_.make_wait(second);
  }

  cudaStream_t stream_ = nullptr;
  std::array<CudaEvent, kMarks> records_;
  CudaEvent here_;
};

const bool registered = copy_queue_dispatch.add(
    Device::cuda,
    [](Context&) -> std::unique_ptr<CopyQueue> { return std::make_unique<CudaCopies>(); });

}  // namespace
}  // namespace tw
