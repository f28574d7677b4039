// CopyQueue: copies between host and device that run beside the computation.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class CopyQueue {
 public:
  /// Places of mark(): two copies can be under way while a third is prepared.
  static constexpr int kMarks = 4;

  virtual ~CopyQueue() = default;
  /// On ctx's device. On the CPU copies are done at once, and there is nothing to wait for.
  static std::unique_ptr<CopyQueue> create(Context& ctx);

  /// Queues a copy behind the earlier ones. Host memory is pinned (Buffer::pinned), or the call
  /// may wait for the copy.
  virtual void copy(const void* from, void* to, size_t bytes) = 0;
  /// Later copies wait for what was queued on the context, any of this device, so far.
  virtual void wait_for(Context& ctx) = 0;
  /// What is queued on the context from now on waits for the copies so far.
  virtual void make_wait(Context& ctx) = 0;
  /// Keeps in one of kMarks places how far the queue is; wait() returns when the copies before are
  /// done, at once for a place that was never marked.
  virtual void record(int place) = 0;
  virtual void wait(int place) = 0;
};

extern DispatchTable<std::unique_ptr<CopyQueue>(Context&)> copy_queue_dispatch;

}  // namespace tw
