// DevicePrefetcher: the batches of a loader, in equal parts, brought into a model's input tensors.
//
// Beside a GPU, parts are brought ahead: while it computes on one, the next is copied from the
// loader's pinned memory to a place on the GPU, by a copy engine; from there to the input when its
// turn comes. The host waits for none of it.
#pragma once

#include <exception>
#include <memory>

#include "data/loader.h"
#include "engine/core/buffer.h"
#include "engine/device/copy_queue.h"

namespace tw {

class DevicePrefetcher {
 public:
  /// `parts` divides the loader's batch. `ahead`: keep the next part ready; by default where a
  /// device computes beside the host. Context and loader outlive the feed, which alone calls next()
  /// on the loader.
  DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts, bool ahead);
  DevicePrefetcher(Context& ctx, Loader& loader, int64_t parts = 1)
      : DevicePrefetcher(ctx, loader, parts, ctx.device() != Device::cpu) {}

  /// Goes to batch `first` of `epoch`.
  void start(uint32_t epoch, int64_t first = 0);
  /// Queues a copy of the next part to images [N,H,W,C] and labels [N]; waits for the loader if it
  /// must, and throws what the loader does.
  void next(const Tensor& images, const Tensor& labels);
  /// To be called when what uses a part is queued: begins to bring the next one, if there is one in
  /// this epoch. Waits for the loader. Errors are next()'s to throw.
  void prefetch();
  /// Seconds spent in waiting for the loader so far.
  double waited() const { return waited_; }

 private:
  void bring();
  /// The part to be brought next; takes a batch from the loader when the one at hand is used up.
  Batch part();

  Context& ctx_;
  Loader& loader_;
  int64_t parts_;
  bool ahead_;
  Batch batch_;         // the loader's, at hand
  int64_t at_ = 0;      // next part of it; parts_: none is left
  int64_t left_ = 0;    // parts of this epoch, not yet brought
  bool ready_ = false;  // place_ holds the next part, or error_ tells why not
  std::exception_ptr error_;
  double waited_ = 0;
  std::unique_ptr<CopyQueue> copies_;
  Buffer images_, labels_;
  Batch place_;
};

}  // namespace tw
