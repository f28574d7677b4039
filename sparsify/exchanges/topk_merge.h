// The merge of gTop-k: two sparse vectors are added and the k largest magnitudes of the sum stay.
#pragma once

#include <vector>

#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

class TopkMerge {
 public:
  /// out = the k largest magnitudes of a + b, ascending by index; of equal magnitudes the lower
  /// index first; sums that are zero vanish. `pruned`, if it is wanted, becomes what does not fit.
  /// Neither a nor b may lie in `out`. (Shi et al. 2019, arXiv 1901.04359, the operation written as
  /// an upside-down T)
  void operator()(const SparseView& a, const SparseView& b, size_t k, SparseVector& out,
                  SparseVector* pruned = nullptr);

 private:
  std::vector<uint64_t> keys_;
};

}  // namespace tw
