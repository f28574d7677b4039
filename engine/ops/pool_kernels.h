// Hot loops of CPU pooling: one pixel, all channels.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/ops/element.h"

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

}  // namespace tw::ops::pool

#define TW_KERNELS "engine/ops/pool_loops.h"
#include "engine/core/each_instruction_set.h"
