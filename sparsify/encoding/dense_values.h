// Dense values: values of which many are near zero, in b bits, as multiples q of the scale s of
// their block: `int8`, `int4`, and `sign`.
//
//   int8, int4   s = largest magnitude / L, L = 2^(b-1) - 1, rounded up; q = value / s, to nearest
//                or, with draws, to one of its two neighbours so that its mean is value / s
//   sign         s = mean magnitude, rounded down; q is 1 or -1
//
// A scale has 8 significant bits (int8) or 4 (the others), so that errors of short floats are
// short.
//
// Bytes of n values: 4 ceil(n / block) for the scales (f32), then ceil(n b / 8), as in
// block_codes.h: two's complement, and in `sign` 1 for -1.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/core/context.h"
#include "engine/core/dtype.h"
#include "engine/core/rng.h"

namespace tw {

class DenseValues {
 public:
  /// `format`: int8, int4 or sign. `block`: a multiple of 64.
  DenseValues(ValueFormat format, size_t block);

  size_t bytes(size_t n) const;
  /// Writes bytes(values.size()) bytes and leaves in `values`, all finite, the errors of rounding.
  void write(Context& ctx, std::span<float> values, std::byte* out,
             const std::optional<RoundingDraws>& draws = {}) const;
  /// Reads the values, or adds them to `values`. False if a scale is not finite; `values` are then
  /// undefined.
  bool read(Context& ctx, const std::byte* from, std::span<float> values) const {
    return read_or_add(ctx, from, values, false);
  }
  bool add(Context& ctx, const std::byte* from, std::span<float> values) const {
    return read_or_add(ctx, from, values, true);
  }

 private:
  bool read_or_add(Context& ctx, const std::byte* from, std::span<float> values, bool add) const;

  int bits_;
  size_t block_;
};

}  // namespace tw
