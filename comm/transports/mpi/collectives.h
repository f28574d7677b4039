// The MPI library's own collectives. Implementation header of the MPI transport.
#pragma once

#include "comm/collectives/vendor.h"
#include "comm/transports/mpi/staging.h"

namespace tw::mpi {

/// `comm` has all ranks of mpirun; it provides rank and timeout. GPU memory that MPI cannot access
/// is copied through the blocks of `staged`.
class MpiCollectives : public VendorCollectives {
 public:
  MpiCollectives(const Communicator& comm, StagedMessages& staged) : comm_(comm), staged_(staged) {}
  void broadcast(Context& ctx, int root, Bytes data) override;
  void reduce(Context& ctx, int root, std::span<float> data) override;
  void allreduce(Context& ctx, std::span<float> data) override;

 private:
  void within_reach(Context& ctx, Bytes data, bool reduces, const std::function<void(Bytes)>& body);
  template <class Start>
  void in_parts(size_t n, const char* call, const Start& start);

  const Communicator& comm_;
  StagedMessages& staged_;
};

}  // namespace tw::mpi
