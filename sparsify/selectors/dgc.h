// Selection of DGC: a threshold from a sample, lowered while too few entries reach it.
#pragma once

#include <vector>

#include "engine/core/rng.h"
#include "sparsify/kernels/candidate_group.h"
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
  Dgc(Context& ctx, const Philox& philox) : philox_(philox), group_(CandidateGroup::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;
  void select_slices(Context& ctx, std::span<const SelectStep> slices, std::span<SelectInfo> infos,
                     SparseVector& out) override;

 private:
  static constexpr int kRounds = 10;
  /// One slice of a group.
  struct Slice {
    size_t k;
    float threshold;
    uint32_t lower[kRounds];  ///< bits of the lower thresholds
  };

  void select_group(Context& ctx, std::span<const SelectStep> slices, std::span<SelectInfo> infos,
                    SparseVector& out);
  /// The thresholds of the slices, from samples.
  void sample(Context& ctx, std::span<const SelectStep> slices);
  /// Collects slices that have few entries again, from lower thresholds.
  void lower(Context& ctx);
  bool few(Context& ctx, size_t slice, uint32_t bits);

  Philox philox_;
  std::unique_ptr<CandidateGroup> group_;
  // of the group, kept so that a step allocates nothing
  std::vector<Slice> slices_;
  std::vector<CandidateGroup::Vector> vectors_;
  std::vector<NthOfSample> samples_;
  std::vector<uint32_t> bits_;
  std::vector<CandidateGroup::Collection> collections_;
  std::vector<CandidateGroup::Largest> largest_;
};

}  // namespace tw
