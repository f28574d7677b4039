// Selection of DGC: a threshold from a sample, lowered while too few entries reach it.
#pragma once

#include "engine/core/rng.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/selector.h"

namespace tw {

/// How n elements are sampled: every stride-th from a random start.
struct DgcSample {
  size_t stride = 1;  ///< 1: the sample is the whole vector
  size_t count = 0;   ///< elements in it; some starts give one fewer
};
/// A sample of 1 % of the elements and at least 2 / density.
DgcSample dgc_sample(size_t n, double density);

/// k = ceil(density n); the k of SelectStep is not used.
///   thr = the ceil(density S)-th largest magnitude of a sample of S
///   at most 10 times, while fewer than 0.8 k magnitudes reach thr:  thr *= 0.8
///   sends the entries that reach it, the k largest if there are more
class Dgc : public Selector {
 public:
  Dgc(Context& ctx, const Philox& philox) : philox_(philox), candidates_(Candidates::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  float sampled(Context& ctx, const SelectStep& in);

  Philox philox_;
  std::unique_ptr<Candidates> candidates_;
};

}  // namespace tw
