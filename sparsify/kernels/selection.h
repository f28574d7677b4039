// The last step of every selection: moves the entries out of u, or reports its first NaN or
// infinity.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/context.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// The result of a selection, without the entries.
struct SelectInfo {
  float threshold = 0;          ///< least magnitude to be sent
  size_t nonfinite = SIZE_MAX;  ///< index of the first NaN or infinity in u, SIZE_MAX if none
  float nonfinite_value = 0;    ///< the entry of u at that index
};

/// Reports the first NaN or infinity of u, if any.
SelectInfo name_nonfinite(Context& ctx, std::span<const float> u);

/// Fills out.values from entry `first` on with e[index - base] and sets those elements of e to
/// zero. e is in host memory.
void move_values(std::span<float> e, uint32_t base, SparseVector& out, size_t first);

}  // namespace tw
