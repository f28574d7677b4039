// The merge of gTop-k: two sparse vectors are added and the k largest magnitudes of the sum stay.
#pragma once

#include <span>
#include <vector>

#include "sparsify/sparse_sum.h"
#include "sparsify/sparse_vector.h"

namespace tw {

class SparseMerge {
 public:
  /// out = the k largest magnitudes of a + b, ascending by index; of equal magnitudes the lower
  /// index first; sums that are zero vanish. What does not fit is added to `residual`, at its
  /// index, unless that is empty. Neither a nor b may lie in `out`. (Shi et al. 2019, arXiv
  /// 1901.04359, the operation written as an upside-down T)
  void operator()(const SparseView& a, const SparseView& b, size_t k, std::span<float> residual,
                  SparseVector& out);

 private:
  std::vector<uint64_t> keys_;
};

}  // namespace tw
