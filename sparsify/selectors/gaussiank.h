// Gaussian threshold (Shi et al. 2019, arXiv 1911.08772, and the authors' code).
#pragma once

#include <vector>

#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"
#include "sparsify/selectors/gaussian_loop.h"

namespace tw {

/// `refine=paper`, the default:
///   thr = mean(u) + |ppf(density / 2)| * std(u);   at most 3 times: S = {i : |u_i| > thr};
///   |S| < 2k/3: thr *= 0.5;   |S| > 4k/3: thr *= 1.5;   else stop.   Sends the last S evaluated.
/// S may be empty or hold everything.
///
/// On the CPU it is one pass over memory: a sample forecasts the thresholds; the pass adds, sums
/// moments and collects from below the last threshold, so many entries that they show where an
/// earlier one is too low. Where they do not, the vector is read again, so that S never depends on
/// the forecast. On a GPU it is two passes, three when thr was too high.
class GaussianThreshold : public Selector {
 public:
  explicit GaussianThreshold(Context& ctx) : candidates_(Candidates::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  /// e += g; returns the moments of u and, with a forecast, collects candidates.
  Moments collect(Context& ctx, const SelectStep& in, size_t k);
  /// Compares the entries above a threshold with k; collects again where the counts do not tell.
  Judgement judge_at(Context& ctx, std::span<float> e, double threshold, size_t k);

  static constexpr uint32_t kNothingCollected = UINT32_MAX;
  std::unique_ptr<Candidates> candidates_;
  GaussianForecast forecast_;
  // of the last collection: what it keeps, and a lower threshold whose entries it counted
  uint32_t min_bits_ = kNothingCollected, half_bits_ = kNothingCollected;
  std::vector<Moments> blocks_;
};

}  // namespace tw
