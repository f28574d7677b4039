#include "engine/device/copy_queue.h"

#include <array>

#include "engine/cuda/cuda_event.h"

namespace tw {
namespace {

/// Copies on a stream of its own, done by the GPU's copy engines while kernels run.
class CudaCopies final : public CopyQueue {
 public:
  CudaCopies() {
    cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "copy stream");
  }
  // errors of a failed run are ignored: they were reported where they occurred
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
  void record(int slot) override { records_.at(slot).record(stream_); }
  void wait(int slot) override { records_.at(slot).wait(); }

 private:
  /// Later work on `second` waits for the work queued on `first`.
  void order(cudaStream_t first, cudaStream_t second) {
    here_.record(first);
    here_.make_wait(second);
  }

  cudaStream_t stream_ = nullptr;
  std::array<CudaEvent, kSlots> records_;
  CudaEvent here_;
};

const bool copy_queue_registered = copy_queue_dispatch.add<CudaCopies>(Device::cuda);

}  // namespace
}  // namespace tw
