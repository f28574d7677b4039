// NcclConnection: NCCL's communicator of one rank, its stream, and the one way we wait for it.
// Implementation header of the NCCL transport.
//
// It is a non-blocking one: no call of the library waits for a peer, so none hangs with it. The
// library pays for that with a thread it starts for each group of calls. After a failure NCCL's
// kernels are stopped before anything is thrown: memory they use is freed next.
#pragma once

#include <nccl.h>

#include <functional>

#include "comm/communicator.h"
#include "engine/cuda/cuda_event.h"

namespace tw::nccl {

class NcclConnection {
 public:
  /// Collective over `owner`'s ranks, each on a GPU of its own, with one id for all. Waits are the
  /// owner's: its deadline, its words.
  NcclConnection(const Communicator& owner, int gpu, const ncclUniqueId& id);
  /// Says goodbye to the others; without a word while an exception is on its way.
  ~NcclConnection();
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  /// What is queued from now on waits for what `ctx` queued so far. Makes the calling thread one
  /// that may queue.
  void begin(const Context& ctx);
  /// Queues the calls of `body` as one; it returns the first bad result. `peer`: whom a wait in
  /// vain would be for, -1: all.
  using Calls = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  void queue(int peer, const Calls& body);
  /// Keeps in place 0 or 1 how far the queue is, and waits until it has come so far.
  void mark(int place);
  void wait(int place, int peer);

  /// Ends what is under way; nothing can be queued afterwards.
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
  CudaEvent ready_, marks_[2];  // created on gpu_, which is made current first
};

}  // namespace tw::nccl
