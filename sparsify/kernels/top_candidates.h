// TopCandidates: the k largest of lists of candidates.
#pragma once

#include <span>
#include <vector>

#include "sparsify/kernels/magnitude.h"
#include "sparsify/kernels/selection.h"

namespace tw {

class TopCandidates {
 public:
  /// Moves the k largest entries of the runs from e, as Candidates::take_largest has it.
  SelectInfo take(Context& ctx, std::span<const SparseVector> runs, size_t k, uint32_t resolution,
                  std::span<float> e, uint32_t base, SparseVector& out);

 private:
  uint64_t cut_key(std::span<const SparseVector> runs, size_t k, uint32_t resolution);

  LogHistogram histogram_;
  std::vector<uint64_t> keys_;
};

}  // namespace tw
