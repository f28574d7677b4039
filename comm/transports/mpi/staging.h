// StagedMessages: messages between GPUs over an MPI library that knows nothing of GPUs.
// Implementation header of the MPI transport.
//
// They travel in pinned blocks: while one is on the wire, the next is fetched from the GPU and the
// one before is brought to the GPU. Both sides cut messages alike; the first block that is not full
// is the last.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "engine/core/buffer.h"
#include "engine/device/copy_queue.h"

namespace tw::mpi {

/// Whether MPI reads and writes a GPU's memory by itself, as it says. MPI is initialised by then.
bool takes_device_memory();

class StagedMessages {
 public:
  /// In the name of `comm`. Memory for blocks is taken when the first message comes.
  StagedMessages(const Communicator& comm, size_t block_bytes) : comm_(comm), block_(block_bytes) {}

  /// Communicator::exchange with the memory of ctx's device.
  size_t exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in);

  /// Calls body with each block of `data`, which lies on ctx's device, in the host's memory, and
  /// brings back what it leaves there; the next block is fetched meanwhile.
  void in_blocks(Context& ctx, Bytes data, const std::function<void(Bytes)>& body);

 private:
  /// Places of a block, and of its mark in the copy queue.
  enum Place { kOut = 0, kIn = 2 };

  void prepare(Context& ctx);
  /// Queues the copy of a block to its place, and marks it.
  void fetch(ConstBytes part, int place);
  std::byte* block(int place) const { return blocks_.data() + static_cast<size_t>(place) * block_; }

  const Communicator& comm_;
  size_t block_;
  std::unique_ptr<CopyQueue> copies_;
  Buffer blocks_;
};

}  // namespace tw::mpi
