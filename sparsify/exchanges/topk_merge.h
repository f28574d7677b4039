// The merge of gTop-k: two sparse vectors are added and the k largest magnitudes of the sum are
// kept (Shi et al. 2019, arXiv 1901.04359).
#pragma once

#include <vector>

#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// Keeps the k largest magnitudes of v; ties keep the lower index. The order of the entries does
/// not change. The dropped entries are appended to `pruned`, if given, which must have room for
/// them. `keys` is working memory.
void prune_to_k(SparseVector& v, size_t k, std::vector<uint64_t>& keys,
                SparseVector* pruned = nullptr);

class TopkMerge {
 public:
  /// out = a + b without zero sums, pruned to k entries, indices ascending. `pruned`, if given, is
  /// set to the dropped entries. Neither a nor b may point into `out`.
  void operator()(const SparseView& a, const SparseView& b, size_t k, SparseVector& out,
                  SparseVector* pruned = nullptr);

 private:
  std::vector<uint64_t> keys_;
};

}  // namespace tw
