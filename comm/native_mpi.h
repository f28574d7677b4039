// The MPI library's own collectives. Implementation header of the MPI transport.
#pragma once

#include "comm/native.h"

namespace tw::mpi {

/// In the name of `comm`, whose ranks are all those of mpirun.
class MpiCollectives : public NativeCollectives {
 public:
  explicit MpiCollectives(const Communicator& comm) : comm_(comm) {}
  void broadcast(Context& ctx, int root, Bytes data) override;
  void reduce(Context& ctx, int root, std::span<float> data) override;
  void allreduce(Context& ctx, std::span<float> data) override;

 private:
  template <class Start>
  void in_parts(size_t n, const char* call, const Start& start);

  const Communicator& comm_;
};

}  // namespace tw::mpi
