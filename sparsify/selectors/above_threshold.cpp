#include "sparsify/selectors/above_threshold.h"

namespace tw {

SelectInfo AboveThreshold::select(Context& ctx, float threshold, const SelectStep& in,
                                  SparseVector& out) {
  if (threshold <= 0) return exact_.select(ctx, in, out);
  candidates_->collect(ctx, in.g, in.e, candidate_bits(magnitude_bits(threshold)));
  return candidates_->take_largest(ctx, candidates_->count(), ~0u, in.e, in.base, out);
}

}  // namespace tw
