#include "engine/ops/pool_kernels.h"

#include <algorithm>
#include <bit>

#include "engine/ops/element.h"

namespace tw::ops::pool {
namespace {

/// Channels handled together in buffers on the stack.
constexpr int64_t kTile = 256;

/// Winners are kept as 32-bit words and chosen by masks: branches would keep the loop scalar.
template <class T>
TW_INLINE void maximum_loop(const Taps<T>& taps, int64_t channels, T* y, uint8_t* argmax) {
  float best[kTile];
  uint32_t where[kTile];
  const auto choose = [](uint32_t mask, uint32_t yes, uint32_t no) {
    return (yes & mask) | (no & ~mask);
  };
  for (int64_t first = 0; first < channels; first += kTile) {
    const int64_t n = std::min(kTile, channels - first);
    for (int64_t c = 0; c < n; ++c) {
      best[c] = load(taps.pixel[0][first + c]);
      where[c] = taps.position[0];
    }
    for (int t = 1; t < taps.count; ++t) {
      const T* const x = taps.pixel[t] + first;
      const uint32_t at = taps.position[t];
      for (int64_t c = 0; c < n; ++c) {
        const float value = load(x[c]);
        const uint32_t larger = value > best[c] ? ~0u : 0u, is_nan = value != value ? ~0u : 0u;
        const uint32_t wins = larger | is_nan;
        best[c] = std::bit_cast<float>(
            choose(wins, std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(best[c])));
        where[c] = choose(wins, at, where[c]);
      }
    }
    for (int64_t c = 0; c < n; ++c) {
      store(y[first + c], best[c]);
      argmax[first + c] = static_cast<uint8_t>(where[c]);
    }
  }
}

/// Calls add(acc, tap, first channel, length) for each tap, then writes the scaled tile.
template <class T, class Add>
TW_INLINE void sum_tiles(const Taps<T>& taps, int64_t channels, float scale, T* y, const Add& add) {
  float acc[kTile];
  for (int64_t first = 0; first < channels; first += kTile) {
    const int64_t n = std::min(kTile, channels - first);
    for (int64_t c = 0; c < n; ++c) acc[c] = 0.0f;
    for (int t = 0; t < taps.count; ++t) add(acc, t, first, n);
    for (int64_t c = 0; c < n; ++c) store(y[first + c], scale * acc[c]);
  }
}

template <class T>
TW_INLINE void sum_loop(const Taps<T>& taps, int64_t channels, float scale, T* y) {
  sum_tiles(taps, channels, scale, y, [&](float* acc, int t, int64_t first, int64_t n) {
    const T* const x = taps.pixel[t] + first;
    for (int64_t c = 0; c < n; ++c) acc[c] += load(x[c]);
  });
}

template <class T>
TW_INLINE void sum_where_loop(const Taps<T>& taps, const T* base, const uint8_t* argmax,
                              int64_t channels, T* y) {
  sum_tiles(taps, channels, 1.0f, y, [&](float* acc, int t, int64_t first, int64_t n) {
    const T* const x = taps.pixel[t] + first;
    const uint8_t* const winner = argmax + (x - base);
    const uint8_t at = taps.position[t];
    for (int64_t c = 0; c < n; ++c) acc[c] += winner[c] == at ? load(x[c]) : 0.0f;
  });
}

}  // namespace

TW_MULTIVERSION void maximum(const Taps<float>& taps, int64_t channels, float* y, uint8_t* argmax) {
  maximum_loop(taps, channels, y, argmax);
}
TW_MULTIVERSION void maximum(const Taps<bf16>& taps, int64_t channels, bf16* y, uint8_t* argmax) {
  maximum_loop(taps, channels, y, argmax);
}
TW_MULTIVERSION void sum(const Taps<float>& taps, int64_t channels, float scale, float* y) {
  sum_loop(taps, channels, scale, y);
}
TW_MULTIVERSION void sum(const Taps<bf16>& taps, int64_t channels, float scale, bf16* y) {
  sum_loop(taps, channels, scale, y);
}
TW_MULTIVERSION void sum_where(const Taps<float>& taps, const float* base, const uint8_t* argmax,
                               int64_t channels, float* y) {
  sum_where_loop(taps, base, argmax, channels, y);
}
TW_MULTIVERSION void sum_where(const Taps<bf16>& taps, const bf16* base, const uint8_t* argmax,
                               int64_t channels, bf16* y) {
  sum_where_loop(taps, base, argmax, channels, y);
}

}  // namespace tw::ops::pool
