// OkTopkState: what Ok-Topk keeps between steps: two thresholds and the borders of the regions. A
// region is the index range that one rank sums. A checkpoint stores the bytes of the state.
#pragma once

#include <array>
#include <cstdint>
#include <span>

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

}  // namespace tw
