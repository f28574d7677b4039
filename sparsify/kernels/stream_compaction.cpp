#include "sparsify/kernels/stream_compaction.h"

#include <algorithm>

#include "sparsify/kernels/magnitude.h"

#define TW_KERNELS "sparsify/kernels/stream_compaction.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

/// Elements that are compared before a branch depends on them.
inline constexpr size_t kRun = 64;

/// Sums of a block, each lane by itself. A square of a float is exact in double, so that fused
/// multiply-add gives the same bits.
struct Sums {
  using Singles = Lanes<float, kMeasureLanes>;
  using Doubles = Lanes<double, kMeasureLanes>;

  Doubles sum{}, square{}, magnitude{};
  Singles largest{};

  TW_INLINE void add(const float* u) {
    const Doubles wide = widened<kMeasureLanes>(u);
    sum += wide;
    square.add_product(wide, wide);
    magnitude += wide.magnitude();
    largest.raise(Singles::load(u).magnitude());
  }
  TW_INLINE Moments total() const {
    Moments all;
    for (size_t j = 0; j < kMeasureLanes; ++j) {
      all.sum += sum[j];
      all.square += square[j];
      all.magnitude += magnitude[j];
      all.largest = std::max(all.largest, largest[j]);
    }
    return all;
  }
};

/// Bits of a run: which of u = e + g (stored to e) have magnitude bits of at least `min_bits`.
template <bool kAdd>
TW_INLINE uint64_t add_and_mark(const float* g, float* e, uint32_t min_bits) {
  uint64_t marks = 0;
  using Floats = Lanes<float, kVectorBytes / sizeof(float)>;
#pragma GCC unroll 16
  for (size_t i = 0; i < kRun; i += Floats::kWidth) {
    Floats u = Floats::load(e + i);
    if constexpr (kAdd) {
      u += Floats::load(g + i);
      u.store(e + i);
    }
#if TW_VECTOR_BYTES == 64
    const auto magnitude = reinterpret_cast<__m512i>(u.magnitude().part[0]);
    uint32_t reaching =
        _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(static_cast<int>(min_bits)));
    // into a general register: GCC 12 may spill the mask as 2 bytes and read 8 (-fsanitize=thread)
    asm("" : "+r"(reaching));
#elif TW_VECTOR_BYTES == 32
    const auto magnitude = reinterpret_cast<__m256i>(u.magnitude().part[0]);
    const __m256i below = _mm256_set1_epi32(static_cast<int>(min_bits - 1));
    const auto reaching = static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(magnitude, below))));
#else
    uint64_t reaching = 0;
    for (size_t j = 0; j < Floats::kWidth; ++j)
      reaching |= uint64_t{magnitude_bits(e[i + j]) >= min_bits} << j;
#endif
    marks |= uint64_t{reaching} << i;
  }
  return marks;
}

/// Collects bits first and branches later: a mispredicted branch on a load would stall the stream.
template <bool kAdd, bool kSum>
size_t compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
               CompactOutput out, Moments* block) {
  Sums sums;
  constexpr size_t words = 16;
  size_t count = 0, i = 0;
  while (i + kRun <= n) {
    uint64_t marks[words];
    const size_t first = i, runs = std::min(words, (n - i) / kRun);
    for (size_t w = 0; w < runs; ++w, i += kRun) {
      marks[w] = add_and_mark<kAdd>(kAdd ? g + i : nullptr, e + i, min_bits);
      if constexpr (kSum)
#pragma GCC unroll 8
        for (size_t j = 0; j < kRun; j += kMeasureLanes) sums.add(e + i + j);
    }
    for (size_t w = 0; w < runs; ++w)
      for (uint64_t left = marks[w]; left != 0; left &= left - 1) {
        const size_t at = first + w * kRun + static_cast<size_t>(__builtin_ctzll(left));
        out.indices[count] = base + static_cast<uint32_t>(at);
        out.values[count++] = e[at];
      }
  }
  const size_t rest = i;
  // branch-free: each entry is written, and kept by advancing the count
  for (; i < n; ++i) {
    if constexpr (kAdd) e[i] += g[i];
    out.indices[count] = base + static_cast<uint32_t>(i);
    out.values[count] = e[i];
    count += magnitude_bits(e[i]) >= min_bits;
  }
  if constexpr (kSum) {
    float last[kRun] = {};
    std::copy(e + rest, e + n, last);
    for (size_t j = 0; j < kRun; j += kMeasureLanes) sums.add(last + j);
    *block = sums.total();
  }
  return count;
}

inline size_t compact_any(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                          CompactOutput out, Moments* block) {
  if (block == nullptr)
    return g != nullptr ? compact<true, false>(g, e, n, min_bits, base, out, block)
                        : compact<false, false>(g, e, n, min_bits, base, out, block);
  return g != nullptr ? compact<true, true>(g, e, n, min_bits, base, out, block)
                      : compact<false, true>(g, e, n, min_bits, base, out, block);
}

}  // namespace tw::TW_CPU
#else
namespace tw {

size_t add_and_compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                       CompactOutput out, Moments* block) {
  return TW_KERNEL(compact_any, g, e, n, min_bits, base, out, block);
}

}  // namespace tw
#endif
