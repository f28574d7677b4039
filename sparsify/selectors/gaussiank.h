// Gaussian threshold (Shi et al. 2019, arXiv 1911.08772, and the authors' code).
#pragma once

#include <vector>

#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"

namespace tw {

/// `refine=paper`, the default:
///   thr = mean(u) + |ppf(density / 2)| * std(u);   at most 3 times: S = {i : |u_i| > thr};
///   |S| < 2k/3: thr *= 0.5;   |S| > 4k/3: thr *= 1.5;   else stop.   Sends the last S evaluated.
/// S may be empty or hold everything. Two passes over memory, three when thr was too high.
class GaussianThreshold : public Selector {
 public:
  explicit GaussianThreshold(Context& ctx) : candidates_(Candidates::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  std::unique_ptr<Candidates> candidates_;
  std::vector<Moments> blocks_;
};

}  // namespace tw
