// NcclConnection: NCCL's communicator of one rank, its stream, and the wait for both.
// Implementation header of the NCCL transport.
//
// The communicator is non-blocking: library calls return without waiting for a peer, so a missing
// peer cannot hang them. NCCL starts a thread for each group of calls instead. After a failure
// NCCL's kernels are stopped before an exception leaves, because the caller then frees the memory
// that they use.
#pragma once

#include <nccl.h>

#include <functional>

#include "comm/communicator.h"
#include "engine/cuda/cuda_event.h"

namespace tw::nccl {

class NcclConnection {
 public:
  /// Collective over `owner`'s ranks, each on a GPU of its own, with one id for all. Waits use the
  /// owner's timeout and its error text.
  NcclConnection(const Communicator& owner, int gpu, const ncclUniqueId& id);
  /// Finalizes the communicator with the other ranks; aborts it during stack unwinding.
  ~NcclConnection();
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  /// Later calls wait for the work that `ctx` has queued so far. Sets the GPU of the calling
  /// thread; call it first on each thread that queues.
  void begin(const Context& ctx);
  /// Queues the calls of `body` as one group; body returns the first error. `peer`: the rank that a
  /// timeout names, -1: all.
  using Calls = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  void queue(int peer, const Calls& body);
  /// Records the calls queued so far in a slot, 0 or 1.
  void record(int slot);
  /// Returns when the calls recorded in the slot are done. `peer`: as in queue().
  void wait(int slot, int peer);

  /// Stops the calls in progress. Nothing can be queued afterwards.
  void abort();

 private:
  template <class Done>
  void wait_for(int peer, const Done& done);
  bool settled();
  void expect(ncclResult_t result, const char* what);
  void finalize();

  const Communicator& owner_;
  int gpu_;
  int exceptions_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  CudaEvent ready_, recorded_[2];  // created on gpu_, which is made current first
};

}  // namespace tw::nccl
