// What Ok-Topk remembers between steps: two thresholds and the borders of the ranks' regions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sparsify/kernels/sparse_ops.h"

namespace tw {

struct OkTopkState {
  /// The index space is described by this many pieces that hold equal numbers of selected entries,
  /// so that what is remembered does not depend on the number of ranks.
  static constexpr size_t kPieces = 64;

  uint32_t k = 0;    ///< what the thresholds are for; 0: nothing is remembered
  float local = 0;   ///< from which magnitude on this rank selects; 0: the k largest
  float global = 0;  ///< from which magnitude on sums are kept
  std::array<uint32_t, kPieces + 1> knots{};  ///< where the pieces begin, and the end

  /// The first index of the region of `rank`; that of `ranks` is the end.
  uint32_t border(int rank, int ranks) const;
};

/// Where the pieces of these indices among d begin; evenly spread when there are none.
std::array<uint32_t, OkTopkState::kPieces + 1> piece_borders(std::span<const uint32_t> indices,
                                                             size_t d);

/// A threshold that moves by a small factor when `count` leaves [least, most] (both in units of k).
float nudged(float threshold, size_t count, size_t k, double least, double most, float factor);

}  // namespace tw
