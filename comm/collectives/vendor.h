// VendorCollectives: the collectives of a transport's library (MPI, NCCL). The collective `vendor`
// calls them.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace tw {

class VendorCollectives {
 public:
  virtual ~VendorCollectives() = default;
  /// As Broadcast, Reduce and Allreduce of comm/collectives/collectives.h, among all ranks of the
  /// transport. Host memory, or memory of ctx's device.
  virtual void broadcast(Context& ctx, int root, Bytes data) = 0;
  virtual void reduce(Context& ctx, int root, std::span<float> data) = 0;
  virtual void allreduce(Context& ctx, std::span<float> data) = 0;
};

/// Those of the transport; UserError where it has none.
VendorCollectives& vendor_of(Communicator& comm);

}  // namespace tw
