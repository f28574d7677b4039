// MeanToMaxSelector: base of the selectors whose threshold lies between the mean and the maximum of
// |u|.
#pragma once

#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"
#include "sparsify/selectors/topk.h"

namespace tw {

/// Thresholds between the mean (r = 0) and the maximum (r = 1) of the magnitudes of n elements.
struct MeanToMax {
  double mean, max;
  MeanToMax(const Moments& u, size_t n)
      : mean(u.magnitude / static_cast<double>(n)), max(double{u.largest}) {}
  /// Bits of the least magnitude above mean + r (max - mean).
  uint32_t bits(double r) const { return bits_above(mean + r * (max - mean)); }
};

class MeanToMaxSelector : public Selector {
 public:
  explicit MeanToMaxSelector(Context& ctx) : candidates_(Candidates::create(ctx)), exact_(ctx) {}

  /// Adds g to e and searches e, unless it has a NaN or infinity.
  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) final;

 protected:
  /// Selects from u = in.e; in.g is empty, and in.k is at most the length.
  virtual SelectInfo search(Context& ctx, const SelectStep& in, const MeanToMax& range,
                            SparseVector& out) = 0;

  std::unique_ptr<Candidates> candidates_;
  TopK exact_;

 private:
  std::vector<Moments> blocks_;
};

}  // namespace tw
