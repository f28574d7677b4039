#include "comm/transports/mpi/staging.h"

#include "comm/transports/mpi/mpi_c.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's query for GPU support
#endif

#include "comm/transports/double_buffer.h"
#include "comm/transports/mpi/requests.h"

namespace tw::mpi {

bool takes_device_memory() {
#if defined(MPIX_GPU_SUPPORT_CUDA)  // MPICH
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#elif defined(MPIX_CUDA_AWARE_SUPPORT)  // Open MPI
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

void StagedMessages::prepare(Context& ctx) {
  if (copies_) return;
  copies_ = CopyQueue::create(ctx);
  blocks_ = Buffer::pinned(ctx.device(), 4 * block_);
}

void StagedMessages::fetch(ConstBytes part, int slot) {
  copies_->copy(part.data(), block(slot), part.size());
  copies_->record(slot);
}

size_t StagedMessages::exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  prepare(ctx);
  copies_->wait_for(ctx);
  bool sending = to >= 0, receiving = from >= 0;
  if (sending) fetch(block_of(out, block_, 0), kOut);
  size_t received = 0;
  for (size_t j = 0; sending || receiving; ++j) {
    const int out_slot = kOut + static_cast<int>(j % 2), in_slot = kIn + static_cast<int>(j % 2);
    MpiRequests requests;
    if (receiving) {
      copies_->wait(in_slot);  // until the block before last is copied to the GPU
      requests.receive(block(in_slot), std::min(block_, in.size() - received), from, kTag);
    }
    if (sending) {
      const size_t bytes = block_of(out, block_, j).size();
      copies_->wait(out_slot);
      requests.send(block(out_slot), bytes, to, kTag);
      sending = bytes == block_;
      if (sending) fetch(block_of(out, block_, j + 1), kOut + static_cast<int>((j + 1) % 2));
    }
    WaitLimit limit = comm_.wait_limit();
    if (!requests.wait(limit)) comm_.throw_timeout(requests.received() ? to : from);
    if (receiving) {
      const size_t bytes = requests.received_bytes();
      copies_->copy(block(in_slot), in.data() + received, bytes);
      copies_->record(in_slot);
      received += bytes;
      receiving = bytes == block_;
    }
  }
  copies_->make_wait(ctx);
  return received;
}

void StagedMessages::in_blocks(Context& ctx, Bytes data, const std::function<void(Bytes)>& body) {
  check<std::logic_error>(block_ % sizeof(float) == 0, "[mpi] blocks of {} bytes cut floats",
                          block_);
  prepare(ctx);
  copies_->wait_for(ctx);
  // the queue runs copies in order: a block is fetched after the copy that empties its slot
  double_buffered(
      blocks_in(data.size(), block_),
      [&](size_t j, int slot) { fetch(block_of(data, block_, j), slot); },
      [&](size_t j, int slot) {
        copies_->wait(slot);
        const Bytes part = block_of(data, block_, j);
        body({block(slot), part.size()});
        copies_->copy(block(slot), part.data(), part.size());
      });
  copies_->make_wait(ctx);
}

}  // namespace tw::mpi
