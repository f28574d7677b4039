// Loops of pooling on the CPU, included once for each instruction set by pool_kernels.h.

namespace tw::ops::TW_CPU {

using pool::Taps;

/// Channels handled together in buffers on the stack.
inline constexpr int64_t kPoolTile = 256;

/// y = maximum of the taps, argmax = position of the first maximal tap; a NaN wins. Winners are
/// kept as 32-bit words and chosen by masks: branches would keep the loop scalar.
template <class T>
void pool_maximum(const Taps<T>& taps, int64_t channels, T* y, uint8_t* argmax) {
  float best[kPoolTile];
  uint32_t winner[kPoolTile];
  const auto choose = [](uint32_t mask, uint32_t yes, uint32_t no) {
    return (yes & mask) | (no & ~mask);
  };
  for (int64_t first = 0; first < channels; first += kPoolTile) {
    const int64_t n = std::min(kPoolTile, channels - first);
    for (int64_t c = 0; c < n; ++c) {
      best[c] = load(taps.pixel[0][first + c]);
      winner[c] = taps.position[0];
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
        winner[c] = choose(wins, at, winner[c]);
      }
    }
    for (int64_t c = 0; c < n; ++c) {
      store(y[first + c], best[c]);
      argmax[first + c] = static_cast<uint8_t>(winner[c]);
    }
  }
}

/// Calls add(acc, tap, first channel, length) for each tap, then writes the scaled tile.
template <class T, class Add>
TW_INLINE void sum_tiles(const Taps<T>& taps, int64_t channels, float scale, T* y, const Add& add) {
  float acc[kPoolTile];
  for (int64_t first = 0; first < channels; first += kPoolTile) {
    const int64_t n = std::min(kPoolTile, channels - first);
    for (int64_t c = 0; c < n; ++c) acc[c] = 0.0f;
    for (int t = 0; t < taps.count; ++t) add(acc, t, first, n);
    for (int64_t c = 0; c < n; ++c) store(y[first + c], scale * acc[c]);
  }
}

/// y = scale * sum of the taps.
template <class T>
void pool_sum(const Taps<T>& taps, int64_t channels, float scale, T* y) {
  sum_tiles(taps, channels, scale, y, [&](float* acc, int t, int64_t first, int64_t n) {
    const T* const x = taps.pixel[t] + first;
    for (int64_t c = 0; c < n; ++c) acc[c] += load(x[c]);
  });
}

/// y = sum of the taps whose argmax is their position. The taps point into the tensor `base`;
/// argmax has its layout.
template <class T>
void pool_sum_where(const Taps<T>& taps, const T* base, const uint8_t* argmax, int64_t channels,
                    T* y) {
  sum_tiles(taps, channels, 1.0f, y, [&](float* acc, int t, int64_t first, int64_t n) {
    const T* const x = taps.pixel[t] + first;
    const uint8_t* const winner = argmax + (x - base);
    const uint8_t at = taps.position[t];
    for (int64_t c = 0; c < n; ++c) acc[c] += where(winner[c] == at, load(x[c]));
  });
}

}  // namespace tw::ops::TW_CPU
