// What Ok-Topk keeps between steps: two thresholds and the borders of the regions. A
// region is the index range that one rank sums. A checkpoint stores the bytes of the state.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sparsify/kernels/sparse_vector.h"

namespace tw {

struct OkTopkState {
  /// The index space is cut into this many pieces with equal numbers of selected entries. Regions
  /// are made from pieces, so that the state does not depend on the number of ranks.
  static constexpr size_t kPieces = 64;

  uint32_t k = 0;    ///< the k of the thresholds; 0: they are not valid
  float local = 0;   ///< least magnitude that this rank selects; 0: the k largest
  float global = 0;  ///< least magnitude of a sum that is kept
  std::array<uint32_t, kPieces + 1> knots{};  ///< first index of each piece, and d

  /// Whether the knots run from 0 to d without a step back, as border() needs.
  bool divides(size_t d) const;

  /// The first index of the region of `rank`; that of `ranks` is the end.
  uint32_t border(int rank, int ranks) const;
};

/// The knots for these indices below d; evenly spread if there are none.
std::array<uint32_t, OkTopkState::kPieces + 1> piece_borders(std::span<const uint32_t> indices,
                                                             size_t d);

/// The two thresholds, computed exactly in some steps and adjusted by small factors in the others.
///   local:   the least magnitude that this rank selects; each rank has its own
///   global:  the least magnitude of a sum that is sent to all ranks; the same on all ranks
///
/// A step is exact every `every` steps, when k changes, when k = d, and after a step whose number
/// of sums was below k / 2 or above 2 k. In other steps a threshold moves by 1.2 % (local) or 0.8 %
/// (global) when its count leaves 2k/3 .. 5k/4 (local) or 2k/3 .. 4k/3 (global). A local count
/// below k / 2 or above 3k / 2 makes this rank select exactly in the next step.
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
