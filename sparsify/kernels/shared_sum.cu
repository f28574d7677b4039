#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/cuda/cuda_event.h"
#include "sparsify/kernels/shared_sum.h"
#include "sparsify/kernels/sparse_sum_cuda.h"

namespace tw::cuda {
namespace {

/// The rank that arrives first in a call uploads. The others wait on the host until the copy is
/// queued; their streams wait for the copy. The next upload waits for the kernels that read this
/// one. The mutex is held for the bookkeeping alone, not while work is queued.
class UploadedOnce final : public SharedSum {
 public:
  explicit UploadedOnce(int ranks) : calls_(ranks), read_(ranks) {}

  void run(Context& ctx, int rank, std::span<const SparseView> parts,
           std::span<float> sum) override {
    if (sum.empty()) return;
    expect(cudaMemsetAsync(sum.data(), 0, sum.size_bytes(), stream(ctx)), "sparse_sum");
    const size_t bytes = staged_bytes(parts);
    if (bytes == 0) return;
    if (begin(++calls_[rank])) {
      const Uploading uploading(*this);
      upload(stream(ctx), parts, bytes);
      uploading.done(bytes);
    }
    uploaded_.make_wait(stream(ctx));
    add_staged(ctx, parts, device_.data(), sum);
    read_[rank].record(stream(ctx));
    const std::lock_guard lock(mutex_);
    ++readers_;
  }

  uint64_t bytes_uploaded() const override {
    const std::lock_guard lock(mutex_);
    return bytes_uploaded_;
  }

 private:
  enum class State : uint8_t { uploading, queued, failed };

  /// Ends the wait of the other ranks, also after an exception.
  class Uploading {
   public:
    explicit Uploading(UploadedOnce& sum) : sum_(sum) {}
    ~Uploading() { end(State::failed, 0); }
    Uploading(const Uploading&) = delete;
    Uploading& operator=(const Uploading&) = delete;
    void done(size_t bytes) const { end(State::queued, bytes); }

   private:
    void end(State state, size_t bytes) const {
      {
        const std::lock_guard lock(sum_.mutex_);
        if (sum_.state_ != State::uploading) return;
        sum_.state_ = state;
        sum_.bytes_uploaded_ += bytes;
      }
      sum_.changed_.notify_all();
    }
    UploadedOnce& sum_;
  };

  /// True: the calling rank uploads. False: another rank has queued the upload.
  bool begin(uint64_t call) {
    std::unique_lock lock(mutex_);
    if (call_ != call) {
      check<std::logic_error>(call_ == 0 || readers_ == calls_.size(),
                              "[sparse_sum] {} of {} ranks have ended the last call", readers_,
                              calls_.size());
      call_ = call;
      readers_ = 0;
      state_ = State::uploading;
      return true;
    }
    changed_.wait(lock, [&] { return state_ != State::uploading; });
    check<Fault>(state_ == State::queued, "[sparse_sum] another rank could not upload the entries");
    return false;
  }

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

  std::vector<uint64_t> calls_;  // of each rank
  std::vector<CudaEvent> read_;  // of each rank: its kernels of the last call
  CudaEvent uploaded_;
  Buffer pinned_, device_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  uint64_t call_ = 0;
  size_t readers_ = 0;
  State state_ = State::queued;
  uint64_t bytes_uploaded_ = 0;
};

const bool shared_sum_registered = shared_sum_dispatch.add(
    Device::cuda,
    [](int ranks) -> std::shared_ptr<SharedSum> { return std::make_shared<UploadedOnce>(ranks); });

}  // namespace
}  // namespace tw::cuda
