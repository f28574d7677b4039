// The one pass over memory that selection costs: add the gradient to the residual and, while the
// sum is in registers, keep what is large.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw {

/// Elements handled at a time: few enough to stay in the first-level cache for a second look.
inline constexpr size_t kBlock = 4096;

/// Where kept entries are written; both arrays need room for n entries, however few are kept.
struct CompactOutput {
  uint32_t* indices;
  float* values;
};

/// e += g (g may be null: e holds the sum already); writes each e[i] with
/// magnitude_bits(e[i]) >= min_bits, and base + i, in ascending order. Returns how many.
/// Picks a body for this CPU; all bodies give the same bits.
size_t add_and_compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                       CompactOutput out);

/// The body for CPUs without AVX-512.
size_t add_and_compact_portable(const float* g, float* e, size_t n, uint32_t min_bits,
                                uint32_t base, CompactOutput out);

}  // namespace tw
