#include "comm/transports/mpi/staging.h"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // where Open MPI tells whether it takes a device's memory
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

void StagedMessages::fetch(ConstBytes part, int place) {
  copies_->copy(part.data(), block(place), part.size());
  copies_->record(place);
}

size_t StagedMessages::exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  prepare(ctx);
  copies_->wait_for(ctx);
  bool sending = to >= 0, receiving = from >= 0;
  if (sending) fetch(block_of(out, block_, 0), kOut);
  size_t received = 0;
  for (size_t j = 0; sending || receiving; ++j) {
    const int leaving = kOut + static_cast<int>(j % 2), coming = kIn + static_cast<int>(j % 2);
    MpiRequests flight;
    if (receiving) {
      copies_->wait(coming);  // until block j - 2 is copied out of it
      flight.receive(block(coming), std::min(block_, in.size() - received), from, kTag);
    }
    if (sending) {
      const size_t bytes = block_of(out, block_, j).size();
      copies_->wait(leaving);
      flight.send(block(leaving), bytes, to, kTag);
      sending = bytes == block_;
      if (sending) fetch(block_of(out, block_, j + 1), kOut + static_cast<int>((j + 1) % 2));
    }
    if (!flight.wait(comm_.deadline())) comm_.throw_timeout(flight.received() ? to : from);
    if (receiving) {
      const size_t bytes = flight.received_bytes();
      copies_->copy(block(coming), in.data() + received, bytes);
      copies_->record(coming);
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
  // copies run in order, so a block is fetched only after the copy that empties its buffer
  double_buffered(
      blocks_in(data.size(), block_),
      [&](size_t j, int place) { fetch(block_of(data, block_, j), place); },
      [&](size_t j, int place) {
        copies_->wait(place);
        const Bytes part = block_of(data, block_, j);
        body({block(place), part.size()});
        copies_->copy(block(place), part.data(), part.size());
      });
  copies_->make_wait(ctx);
}

}  // namespace tw::mpi
