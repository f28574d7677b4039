// CopyQueue: copies between host and device that run while the device computes.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class CopyQueue {
 public:
  /// Slots of record(): enough for two running copies while a third is prepared.
  static constexpr int kSlots = 4;

  virtual ~CopyQueue() = default;
  /// A queue on ctx's device. On the CPU, copies are done at once and waits return at once.
  static std::unique_ptr<CopyQueue> create(Context& ctx);

  /// Queues a copy of `bytes` after the earlier ones. Host memory should be pinned
  /// (Buffer::pinned); otherwise the call may wait for the copy.
  virtual void copy(const void* from, void* to, size_t bytes) = 0;
  /// Later copies wait for the work queued so far on ctx, any context of this device.
  virtual void wait_for(Context& ctx) = 0;
  /// Later work on ctx waits for the copies queued so far.
  virtual void make_wait(Context& ctx) = 0;
  /// Records the copies queued so far in a slot in [0, kSlots).
  virtual void record(int slot) = 0;
  /// Blocks until the copies recorded in the slot are done; returns at once for an unused slot.
  virtual void wait(int slot) = 0;
};

inline constinit DispatchTable<std::unique_ptr<CopyQueue>(Context&)> copy_queue_dispatch{
    "copy_queue"};

}  // namespace tw
