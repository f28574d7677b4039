// Resampler: resizes a rectangle of an RGB image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image/decoder.h"

namespace tw {

/// Not thread-safe. Reuses its memory from call to call.
class Resampler {
 public:
  /// Resizes picture.box to width x height RGB pixels; `mirror` flips left to right. Bilinear with
  /// antialiasing, as in Pillow: when the image shrinks, the filter is as wide as an output pixel.
  /// `cut`: from the pixels of the box alone, as if it were the image.
  void run(const Picture& picture, int width, int height, bool mirror, std::span<uint8_t> out,
           bool cut = false);

  /// One axis: output pixel o is the sum of taps[o * count + t] * input[first[o] + t].
  struct Axis {
    std::vector<int> first;
    std::vector<int16_t> taps;  ///< in units of 2^-14; those of a pixel add up to 2^14
    size_t count = 0;
  };

 private:
  Axis rows_, columns_;
  std::vector<int16_t> row_;
};

}  // namespace tw
