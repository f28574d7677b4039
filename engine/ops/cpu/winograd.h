// Sizes and layouts of Winograd's convolution F(4x4, 3x3) (Lavin and Gray, CVPR 2016): a tile of
// 6 x 6 input pixels and a 3 x 3 kernel give 4 x 4 output pixels with 36 products for each pair of
// channels instead of 144. Images are NHWC, channels multiples of kLanes.
#pragma once

#include <cstddef>

namespace tw::ops::winograd {

inline constexpr size_t kLanes = 16;   ///< channels that are computed together
inline constexpr size_t kPoints = 36;  ///< of a transformed tile
inline constexpr size_t kGroup = 32;   ///< tiles that are transformed together

/// Input and output of a convolution with stride 1, cut into tiles that are counted row by row and
/// image by image.
struct Tiling {
  size_t batch;
  size_t in_height, in_width, in_channels;
  size_t out_height, out_width, out_channels;
  size_t padding;

  size_t across() const { return (out_width + 3) / 4; }
  size_t tiles_an_image() const { return (out_height + 3) / 4 * across(); }
  size_t tiles() const { return batch * tiles_an_image(); }
  /// Length of the transformed kernel, and of its gradient.
  size_t kernel_floats() const { return kPoints * in_channels * out_channels; }
  /// Scratch of one call of convolve or of correlate, in floats.
  size_t scratch_floats() const { return kPoints * (input_stride() + output_stride()); }

  // Transformed tiles are [36, channels / kLanes, kGroup, kLanes]. The last summand keeps the
  // points from being a power of two apart, which would map to few sets of the caches.
  size_t input_stride() const { return in_channels * kGroup + kLanes; }
  size_t output_stride() const { return out_channels * kGroup + kLanes; }
};

/// Places of the weights of a kernel: those of lane l, row r and tap t = 0...8 are at
/// first + l * lane + r * row + t * tap.
struct KernelView {
  const float* first;
  std::ptrdiff_t lane, row, tap;
};

/// A range of blocks of kLanes output channels.
struct Blocks {
  size_t begin, end;
};

}  // namespace tw::ops::winograd

#define TW_KERNELS "engine/ops/cpu/winograd_loops.h"
#include "engine/core/each_instruction_set.h"
