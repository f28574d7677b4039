// Convolutions for the stand-in of cuDNN, by their definition.
#pragma once

#include <array>
#include <cstdint>

#include "engine/core/dtype.h"

namespace tw::emulator {

/// Four dimensions (n, c, h, w; a filter's: out, in, h, w) and the elements from one to the next.
struct Image {
  void* data = nullptr;
  DType dtype;
  std::array<int64_t, 4> dims{}, strides{};

  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
};

enum class ConvolutionPass : uint8_t { forward, backward_data, backward_filter };

struct Convolution {
  ConvolutionPass pass;
  Image x, w, y;
  int64_t stride, padding;
  bool accumulate;  ///< what is there is added to

  void run() const;
};

}  // namespace tw::emulator
