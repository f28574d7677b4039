// Stream compaction: adds the gradient to the residual, takes moments and writes out the large
// sums, in one pass over memory.
#pragma once

#include "sparsify/kernels/moments.h"

namespace tw {

/// Elements per call: few enough to stay in the first-level cache.
inline constexpr size_t kBlock = kMeasureBlock;

/// Output arrays; both need room for n entries, however few are kept.
struct CompactOutput {
  uint32_t* indices;
  float* values;
};

/// e += g (g may be null: e holds the sum already); writes each e[i] with
/// magnitude_bits(e[i]) >= min_bits, and base + i, in ascending order. Returns how many. `block`:
/// becomes the moments of e if it is not null; n <= kMeasureBlock then.
size_t add_and_compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                       CompactOutput out, Moments* block = nullptr);

}  // namespace tw
