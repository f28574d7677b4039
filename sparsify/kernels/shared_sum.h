// SharedSum: sparse_sum() on ranks that are threads of one process and add the same entries. One of
// them uploads the entries to the memory of the GPU; all add from there.
#pragma once

#include <cstdint>
#include <memory>

#include "sparsify/kernels/sparse_ops.h"

namespace tw {

class SharedSum {
 public:
  virtual ~SharedSum() = default;
  /// For `ranks` ranks on ctx's device. With one rank, and on the CPU, it is sparse_sum().
  static std::shared_ptr<SharedSum> create(Context& ctx, int ranks);

  /// As sparse_sum(). All ranks make the same calls with the same parts; each from a thread of its
  /// own. A rank makes a call only when all have ended the call before: a message from every rank
  /// lies between two calls. Throws Fault when the rank that uploads has failed.
  virtual void run(Context& ctx, int rank, std::span<const SparseView> parts,
                   std::span<float> sum) = 0;
  /// Bytes uploaded so far, over all ranks.
  virtual uint64_t bytes_uploaded() const { return 0; }
};

inline constinit DispatchTable<std::shared_ptr<SharedSum>(int ranks)> shared_sum_dispatch{
    "shared_sum"};

}  // namespace tw
