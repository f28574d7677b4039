// Resampler: a part of an RGB image to another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/jpeg/decoder.h"

namespace tw {

/// One thread at a time. Memory is kept from call to call.
class Resampler {
 public:
  /// Writes picture.box as width x height RGB pixels; `mirror` swaps left and right. Bilinear, with
  /// the triangle as wide as an output pixel where the image shrinks (antialiased, as Pillow's).
  void run(const Picture& picture, int width, int height, bool mirror, std::span<uint8_t> out);

  /// One axis: output pixel o is the sum of taps[o * count + t] * input[first[o] + t].
  struct Axis {
    std::vector<int> first;
    std::vector<int16_t> taps;  ///< in units of 2^-14; their sum is exactly 2^14
    size_t count = 0;
  };

 private:
  Axis rows_, columns_;
  std::vector<int16_t> row_;
};

}  // namespace tw
