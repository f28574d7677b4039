// Exact top-k of u = g + e at little more than the cost of the addition: estimates a threshold from
// a small sample, collects candidates in the pass that adds, and selects exactly among them.
#pragma once

#include "sparsify/kernels/candidates.h"
#include "sparsify/selector.h"

namespace tw {

class TopK : public Selector {
 public:
  /// `resolution`: mask of the magnitude bits that are compared; see Candidates::take_largest.
  explicit TopK(Context& ctx, uint32_t resolution = ~0u)
      : candidates_(Candidates::create(ctx)), resolution_(resolution) {}

  /// in.g may be empty: in.e holds u already.
  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  std::unique_ptr<Candidates> candidates_;
  uint32_t resolution_;
};

/// Every entry of at least a threshold, in one pass over memory; the k largest while there is none.
class AboveThreshold {
 public:
  explicit AboveThreshold(Context& ctx) : exact_(ctx), candidates_(Candidates::create(ctx)) {}

  /// As Selector::select; `threshold` is a magnitude, 0: none.
  SelectInfo select(Context& ctx, float threshold, const SelectStep& in, SparseVector& out);

 private:
  TopK exact_;
  std::unique_ptr<Candidates> candidates_;
};

}  // namespace tw
