// StagedMessages: messages between GPUs over an MPI library without GPU support.
// Implementation header of the MPI transport.
//
// Messages travel in pinned blocks: while MPI sends one, the next is copied from the GPU and the
// previous one to the GPU. Both sides cut messages the same way; the first block that is not full
// is the last.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "engine/core/buffer.h"
#include "engine/device/copy_queue.h"

namespace tw::mpi {

/// Whether MPI reports that it reads and writes GPU memory. MPI must be initialised.
bool takes_device_memory();

class StagedMessages {
 public:
  /// `comm` provides the timeout. The first message allocates the blocks.
  StagedMessages(const Communicator& comm, size_t block_bytes) : comm_(comm), block_(block_bytes) {}

  /// Communicator::exchange with memory of ctx's device.
  size_t exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in);

  /// Calls body with a host copy of each block of `data`, which is on ctx's device, and copies the
  /// block back afterwards; the next block is copied to the host meanwhile.
  void in_blocks(Context& ctx, Bytes data, const std::function<void(Bytes)>& body);

 private:
  /// First of the two blocks for sending and for receiving; also their slots in the copy queue.
  enum Slot { kOut = 0, kIn = 2 };

  void prepare(Context& ctx);
  /// Queues the copy of `part` to block `slot`, and records it.
  void fetch(ConstBytes part, int slot);
  std::byte* block(int slot) const { return blocks_.data() + static_cast<size_t>(slot) * block_; }

  const Communicator& comm_;
  size_t block_;
  std::unique_ptr<CopyQueue> copies_;
  Buffer blocks_;
};

}  // namespace tw::mpi
