#include "sparsify/compact.h"

#include <algorithm>

#include "engine/simd.h"
#include "sparsify/magnitude.h"

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
    // branch-free: written always, kept by moving on
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

// compress in registers, then store: compressing stores to memory are slow on Zen 4
template <bool kAdd>
__attribute__((target("avx512f"))) size_t compact_avx512(const float* g, float* e, size_t n,
                                                         uint32_t min_bits, uint32_t base,
                                                         CompactOutput out) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(min_bits));
  const __m512i no_sign = _mm512_set1_epi32(0x7fffffff);
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  constexpr size_t width = 16, unroll = 4;
  size_t count = 0;

  const auto keep = [&](size_t i, __m512 u, __mmask16 kept)
      __attribute__((target("avx512f"), always_inline)) {
    const __m512i index = _mm512_add_epi32(
        _mm512_set1_epi32(static_cast<int>(base + static_cast<uint32_t>(i))), lanes);
    _mm512_storeu_si512(out.indices + count, _mm512_maskz_compress_epi32(kept, index));
    _mm512_storeu_ps(out.values + count, _mm512_maskz_compress_ps(kept, u));
    count += static_cast<size_t>(__builtin_popcount(kept));
  };

  size_t i = 0;
  for (; i + unroll * width <= n; i += unroll * width) {
    __m512 u[unroll];
    __mmask16 kept[unroll];
    for (size_t j = 0; j < unroll; ++j) {
      const size_t at = i + j * width;
      u[j] = _mm512_loadu_ps(e + at);
      if constexpr (kAdd) {
        u[j] = _mm512_add_ps(u[j], _mm512_loadu_ps(g + at));
        _mm512_storeu_ps(e + at, u[j]);
      }
      kept[j] =
          _mm512_cmpge_epu32_mask(_mm512_and_si512(_mm512_castps_si512(u[j]), no_sign), least);
    }
    if ((kept[0] | kept[1] | kept[2] | kept[3]) == 0) [[likely]]
      continue;
    for (size_t j = 0; j < unroll; ++j)
      if (kept[j] != 0) keep(i + j * width, u[j], kept[j]);
  }
  for (; i < n; i += width) {
    const __mmask16 valid =
        n - i >= width ? __mmask16{0xffff} : static_cast<__mmask16>((1u << (n - i)) - 1);
    __m512 u = _mm512_maskz_loadu_ps(valid, e + i);
    if constexpr (kAdd) {
      u = _mm512_add_ps(u, _mm512_maskz_loadu_ps(valid, g + i));
      _mm512_mask_storeu_ps(e + i, valid, u);
    }
    keep(i, u,
         _mm512_mask_cmpge_epu32_mask(valid, _mm512_and_si512(_mm512_castps_si512(u), no_sign),
                                      least));
  }
  return count;
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
