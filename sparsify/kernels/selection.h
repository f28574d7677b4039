// What every selection ends in: entries moved out of u, or the NaN that was found in it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/context.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// What a selector found out on the way.
struct SelectInfo {
  float threshold = 0;          ///< smallest magnitude it meant to send
  size_t nonfinite = SIZE_MAX;  ///< index of the first NaN or infinity in u, SIZE_MAX if none
  float nonfinite_value = 0;    ///< the entry of u that stands there
};

/// Names the first NaN or infinity of u, if any.
SelectInfo name_nonfinite(Context& ctx, std::span<const float> u);

/// Moves the entries of e that out's indices from `first` on name (with `base` added) to its
/// values, leaving zeros. On the CPU.
void move_values(std::span<float> e, uint32_t base, SparseVector& out, size_t first);

}  // namespace tw
