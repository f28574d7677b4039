// What the library behind a transport sums and spreads by itself. The collective called `native`
// stands for it; comm/native.cpp.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace tw {

class VendorCollectives {
 public:
  virtual ~VendorCollectives() = default;
  /// As Broadcast, Reduce and Allreduce of comm/collectives.h, among all ranks of the transport.
  virtual void broadcast(Context& ctx, int root, Bytes data) = 0;
  virtual void reduce(Context& ctx, int root, std::span<float> data) = 0;
  virtual void allreduce(Context& ctx, std::span<float> data) = 0;
};

}  // namespace tw
