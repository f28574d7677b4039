// DevicePrefetcher: copies a loader's batches to a model's input tensors, in micro-batches.
//
// With a GPU it works ahead: while the GPU computes on one micro-batch, a copy engine brings the
// next from the loader's pinned memory to a staging buffer on the GPU; next() copies from there.
// The host waits for a copy only before the loader reuses the memory that it reads.
#pragma once

#include <exception>
#include <memory>

#include "data/loader.h"
#include "engine/core/buffer.h"
#include "engine/device/copy_queue.h"

namespace tw {

class DevicePrefetcher {
 public:
  /// Divides each batch of the loader into `parts` micro-batches of equal size. `ahead`: stage the
  /// next micro-batch early. `ctx` and `loader` must outlive this object, and no other caller may
  /// use start() or next() of the loader.
  DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts, bool ahead);
  /// Works ahead on a GPU.
  DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts = 1)
      : DevicePrefetcher(ctx, loader, parts, ctx.device() != Device::cpu) {}

  /// Starts `epoch` at batch `first`.
  void start(uint32_t epoch, int64_t first = 0);
  /// Queues copies of the next micro-batch to images [N,H,W,C] and labels [N]. Waits for the loader
  /// if the micro-batch was not staged. Throws the loader's errors.
  void next(const Tensor& images, const Tensor& labels);
  /// Stages the next micro-batch of this epoch, if there is one. Call it when the work on the
  /// current one is queued. Waits for the loader; next() throws its errors.
  void prefetch();
  /// Seconds spent waiting for the loader.
  double waited() const { return waited_; }

 private:
  void stage();
  Batch take_part();

  Context& ctx_;
  Loader& loader_;
  const int64_t parts_;
  const bool ahead_;
  Batch batch_;             // of the loader
  int64_t next_part_;       // of batch_; == parts_: batch_ is used up
  int64_t parts_left_ = 0;  // of the epoch
  bool is_staged_ = false;  // staged_ has the next micro-batch, or staging_error_ is set
  std::exception_ptr staging_error_;
  double waited_ = 0;
  std::unique_ptr<CopyQueue> copies_;  // null unless ahead_
  Buffer staged_images_, staged_labels_;
  Batch staged_;
};

}  // namespace tw
