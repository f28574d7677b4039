// Convolutions for the emulated cuDNN, by oneDNN in f32.
#pragma once

#include <array>
#include <cstdint>

#include "engine/core/dtype.h"

namespace tw::emulator {

/// A tensor of four dimensions (n, c, h, w; filters: out, in, h, w); strides in elements.
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
  bool accumulate;      ///< add to the output
  bool rounds = false;  ///< the operands to the 11 bits of TF32

  void run() const;
};

}  // namespace tw::emulator
