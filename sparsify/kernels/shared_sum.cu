#include "engine/cuda/cuda_event.h"
#include "sparsify/kernels/rank_calls.h"
#include "sparsify/kernels/shared_sum.h"
#include "sparsify/kernels/sparse_sum_cuda.h"

namespace tw::cuda {
namespace {

/// The rank that arrives first in a call uploads. The others wait on the host until the copy is
/// queued; their streams wait for the copy. The next upload waits for the kernels that read this
/// one.
class UploadedOnce final : public SharedSum {
 public:
  explicit UploadedOnce(int ranks) : calls_("sparse_sum", ranks), read_(ranks) {}

  void run(Context& ctx, int rank, std::span<const SparseView> parts,
           std::span<float> sum) override {
    if (sum.empty()) return;
    expect(cudaMemsetAsync(sum.data(), 0, sum.size_bytes(), stream(ctx)), "sparse_sum");
    const size_t bytes = staged_bytes(parts);
    if (bytes == 0) return;
    calls_.begin(rank, [&] {
      upload(stream(ctx), parts, bytes);
      return bytes;
    });
    uploaded_.make_wait(stream(ctx));
    add_staged(ctx, parts, device_.data(), sum);
    read_[rank].record(stream(ctx));
    calls_.end();
  }

  uint64_t bytes_uploaded() const override { return calls_.bytes(); }

 private:
  void upload(cudaStream_t stream, std::span<const SparseView> parts, size_t bytes) {
    for (CudaEvent& read : read_) read.make_wait(stream);
    uploaded_.wait();               // the last copy from pinned_, which ended long ago
    if (pinned_.bytes() < bytes) {  // counts vary a little from step to step
      pinned_ = Buffer::pinned(Device::cuda, bytes + bytes / 2);
      device_ = Buffer(Device::cuda, bytes + bytes / 2);
    }
    stage(parts, pinned_.data());
    expect(cudaMemcpyAsync(device_.data(), pinned_.data(), bytes, cudaMemcpyHostToDevice, stream),
           "sparse_sum");
    uploaded_.record(stream);
  }

  RankCalls calls_;
  std::vector<CudaEvent> read_;  // of each rank: its kernels of the last call
  CudaEvent uploaded_;
  Buffer pinned_, device_;
};

const bool shared_sum_registered = shared_sum_dispatch.add(
    Device::cuda,
    [](int ranks) -> std::shared_ptr<SharedSum> { return std::make_shared<UploadedOnce>(ranks); });

}  // namespace
}  // namespace tw::cuda
