// Trimmed top-k: the k largest entries above a threshold between mean and maximum.
#pragma once

#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"
#include "sparsify/selectors/topk.h"

namespace tw {

/// A threshold between the mean and the maximum of |u|, for both selections of RedSync.
struct BetweenMeanAndMax {
  double mean, max;
  BetweenMeanAndMax(const Moments& u, size_t n)
      : mean(u.magnitude / static_cast<double>(n)), max(double{u.largest}) {}
  /// Bits of the least magnitude above mean + r (max - mean).
  uint32_t bits(double r) const { return bits_above(mean + r * (max - mean)); }
};

///   M = max |u|;  A = mean |u|;  for r = .8, .6, .4, .2, 0:  S = {i : |u_i| > A + r (M - A)}
///   sends the k largest of the first S with at least k entries; of u if there is none
class Trimmed : public Selector {
 public:
  explicit Trimmed(Context& ctx) : candidates_(Candidates::create(ctx)), exact_(ctx) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  std::vector<Moments> blocks_;
  std::unique_ptr<Candidates> candidates_;
  TopK exact_;
};

}  // namespace tw
