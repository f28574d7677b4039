// ThresholdTracker: the two thresholds of Ok-Topk, computed exactly in some steps and adjusted by
// small factors in the others.
//   local:   the least magnitude that this rank selects; each rank has its own
//   global:  the least magnitude of a sum that is sent to all ranks; the same on all ranks
//
// A step is exact every `every` steps, when k changes, when k = d, and after a step whose number of
// sums was below k / 2 or above 2 k. In other steps a threshold moves by 1.2 % (local) or 0.8 %
// (global) when its count leaves 2k/3 .. 5k/4 (local) or 2k/3 .. 4k/3 (global). A local count below
// k / 2 or above 3k / 2 makes this rank select exactly in the next step.
#pragma once

#include "sparsify/exchanges/oktopk_state.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

class ThresholdTracker {
 public:
  /// The thresholds live in `state`, which outlives the tracker.
  ThresholdTracker(OkTopkState& state, int64_t every) : state_(state), every_(every) {}

  /// Begins a step that asks for k of d entries; decides whether it is exact.
  void begin_step(uint64_t step, size_t k, size_t d);
  bool exact() const { return exact_; }
  /// The least magnitude to select; 0: the k largest.
  float local() const { return state_.local; }
  /// Magnitude bits that a sum must reach to be sent.
  uint32_t least_sum_bits() const;

  /// After the selection on this rank: the local threshold of the next step.
  void update_local(const SparseVector& selected, size_t k);
  /// After the exchange: the global threshold of the next step, from the sums that all ranks kept.
  void update_global(const SparseVector& sums, size_t k);

 private:
  OkTopkState& state_;
  int64_t every_;
  bool exact_ = true;
};

/// `threshold` times or divided by `factor` when count / k is above `most` or below `least`.
float nudged(float threshold, size_t count, size_t k, double least, double most, float factor);

}  // namespace tw
