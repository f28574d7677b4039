// Scaled values: a value in b bits, a sign and a magnitude m of 1 to L = 2^(b-1), times the scale s
// of its block of values: `int8`, `int4`, `int2`, and `sign` with one block for the whole message.
//
//   s = the lesser of largest / L and mean, over the magnitudes of the block, rounded down to 8
//       significant bits (int8) or 4 (the others), so that multiples of s are short floats
//   m = magnitude / s to the nearest of 1, 2 ... L or, with draws, to one of its two neighbours, so
//       that the mean of a value between s and L s is that value
//
// No value becomes zero, since entries that are selected for their size are far from it. To
// nearest, the error has a smaller norm than the block: the nearest multiple is at least as near as
// s, and with s for all of n values the squares of the errors add up to n s (2 mean - s) less than
// those of the values. A block that is rounded again keeps its scale and its values.
//
// Bytes of n values: 4 ceil(n / block) for the scales (f32), then ceil(n b / 8), as in
// block_codes.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/core/dtype.h"
#include "engine/core/rng.h"

namespace tw {

class ScaledValues {
 public:
  /// `block`: a multiple of 64; not used by `sign`.
  ScaledValues(ValueFormat format, size_t block);

  size_t bytes(size_t n) const;
  /// Rounds values, all finite, in place. A value of zero becomes s.
  void round(std::span<float> values, const std::optional<RoundingDraws>& draws = {}) const;
  /// Writes rounded values, bytes(values.size()) bytes.
  void write(std::span<const float> values, std::byte* out) const;
  void read(const std::byte* from, std::span<float> values) const;

 private:
  int bits_;
  size_t block_;
};

}  // namespace tw
