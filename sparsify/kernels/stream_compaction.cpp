#include "sparsify/kernels/stream_compaction.h"

#include <algorithm>

#include "engine/core/simd.h"
#include "sparsify/kernels/magnitude.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tw {

namespace {

// the largest magnitude of a short run, after the addition
TW_MULTIVERSION uint32_t add_and_peek(const float* g, float* e, size_t n) {
  uint32_t largest = 0;
  if (g != nullptr)
    for (size_t i = 0; i < n; ++i) e[i] += g[i];
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, magnitude_bits(e[i]));
  return largest;
}

}  // namespace

size_t add_and_compact_portable(const float* g, float* e, size_t n, uint32_t min_bits,
                                uint32_t base, CompactOutput out) {
  constexpr size_t run = 128;
  size_t count = 0;
  for (size_t begin = 0; begin < n; begin += run) {
    const size_t end = std::min(n, begin + run);
    if (add_and_peek(g ? g + begin : nullptr, e + begin, end - begin) < min_bits) continue;
    // branch-free: each entry is written, and kept by advancing the count
    for (size_t i = begin; i < end; ++i) {
      out.indices[count] = base + static_cast<uint32_t>(i);
      out.values[count] = e[i];
      count += magnitude_bits(e[i]) >= min_bits;
    }
  }
  return count;
}

#if defined(__x86_64__)
namespace {

// Bits of a run of 64 floats: which of u = e + g (stored to e) reach min_bits.
template <bool kAdd>
__attribute__((target("avx512f"))) inline uint64_t add_and_mark(const float* g, float* e,
                                                                __m512i least) {
  const __m512i no_sign = _mm512_set1_epi32(0x7fffffff);
  uint64_t marks = 0;
  for (size_t j = 0; j < 4; ++j) {
    __m512 u = _mm512_loadu_ps(e + 16 * j);
    if constexpr (kAdd) {
      u = _mm512_add_ps(u, _mm512_loadu_ps(g + 16 * j));
      _mm512_storeu_ps(e + 16 * j, u);
    }
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(u), no_sign);
    marks |= uint64_t{_mm512_cmpge_epu32_mask(magnitude, least)} << (16 * j);
  }
  return marks;
}

// Collects bits first and branches later: a mispredicted branch on a load would stall the stream.
template <bool kAdd>
__attribute__((target("avx512f"))) size_t compact_avx512(const float* g, float* e, size_t n,
                                                         uint32_t min_bits, uint32_t base,
                                                         CompactOutput out) {
  constexpr size_t width = 64, words = 16;
  const __m512i least = _mm512_set1_epi32(static_cast<int>(min_bits));
  size_t count = 0, i = 0;
  while (i + width <= n) {
    uint64_t marks[words];
    const size_t first = i, runs = std::min(words, (n - i) / width);
    for (size_t w = 0; w < runs; ++w, i += width)
      marks[w] = add_and_mark<kAdd>(kAdd ? g + i : nullptr, e + i, least);
    for (size_t w = 0; w < runs; ++w)
      for (uint64_t left = marks[w]; left != 0; left &= left - 1) {
        const size_t at = first + w * width + static_cast<size_t>(__builtin_ctzll(left));
        out.indices[count] = base + static_cast<uint32_t>(at);
        out.values[count++] = e[at];
      }
  }
  if (i == n) return count;
  return count + add_and_compact_portable(kAdd ? g + i : nullptr, e + i, n - i, min_bits,
                                          base + static_cast<uint32_t>(i),
                                          {out.indices + count, out.values + count});
}

}  // namespace

size_t add_and_compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                       CompactOutput out) {
  static const bool avx512 = __builtin_cpu_supports("avx512f");
  if (!avx512) return add_and_compact_portable(g, e, n, min_bits, base, out);
  return g ? compact_avx512<true>(g, e, n, min_bits, base, out)
           : compact_avx512<false>(g, e, n, min_bits, base, out);
}
#else
size_t add_and_compact(const float* g, float* e, size_t n, uint32_t min_bits, uint32_t base,
                       CompactOutput out) {
  return add_and_compact_portable(g, e, n, min_bits, base, out);
}
#endif

}  // namespace tw
