// Hot loops of CPU pooling: one pixel, all channels.
#pragma once

#include <array>
#include <cstdint>

#include "engine/core/dtype.h"

namespace tw::ops::pool {

/// Input pixels of one output pixel, each with its position in the window.
template <class T>
struct Taps {
  std::array<const T*, 256> pixel;
  std::array<uint8_t, 256> position;
  int count = 0;

  void add(const T* p, int64_t at) {
    pixel[count] = p;
    position[count++] = static_cast<uint8_t>(at);
  }
};

/// y = maximum of the taps, argmax = position of the first maximal tap; a NaN wins.
void maximum(const Taps<float>& taps, int64_t channels, float* y, uint8_t* argmax);
void maximum(const Taps<bf16>& taps, int64_t channels, bf16* y, uint8_t* argmax);

/// y = scale * sum of the taps.
void sum(const Taps<float>& taps, int64_t channels, float scale, float* y);
void sum(const Taps<bf16>& taps, int64_t channels, float scale, bf16* y);

/// y = sum of the taps whose argmax is their position. The taps point into the tensor `base`;
/// argmax has its layout.
void sum_where(const Taps<float>& taps, const float* base, const uint8_t* argmax, int64_t channels,
               float* y);
void sum_where(const Taps<bf16>& taps, const bf16* base, const uint8_t* argmax, int64_t channels,
               bf16* y);

}  // namespace tw::ops::pool
