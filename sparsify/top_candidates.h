// TopCandidates: the k largest of a list of candidates.
#pragma once

#include <vector>

#include "sparsify/candidates.h"

namespace tw {

class TopCandidates {
 public:
  /// `resolution`: mask of the magnitude bits that count; where two magnitudes agree in them, the
  /// lower index goes first. All bits: exact. The upper 16: what a LogHistogram can tell apart.
  explicit TopCandidates(uint32_t resolution = ~0u) : resolution_(resolution) {}

  /// Moves the k largest candidates (all, where they are no more) from e, which holds u, to `out`.
  /// Names the first NaN or infinity instead; candidates hold it whatever they were collected by.
  SelectInfo take(Context& ctx, const Candidates& candidates, size_t k, std::span<float> e,
                  uint32_t base, SparseVector& out);

 private:
  uint64_t cut_key(const Candidates& candidates, size_t k);

  uint32_t resolution_;
  LogHistogram histogram_;
  std::vector<uint64_t> keys_;
};

}  // namespace tw
