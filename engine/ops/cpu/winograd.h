// Loops of Winograd's convolution F(4x4, 3x3) (Lavin and Gray, CVPR 2016): a tile of 6 x 6 input
// pixels and a 3 x 3 kernel give 4 x 4 output pixels with 36 products for each pair of channels
// instead of 144. Images are NHWC, channels multiples of kLanes. The CPU must have AVX-512.
#pragma once

#include <cstddef>

#include "engine/core/dtype.h"

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

/// Transforms the weights of kLanes output channels; `to` is [36, rows, kLanes], and the rows are
/// the input channels.
void transform_kernel(const KernelView& w, size_t rows, float* to);

/// Writes the tiles [begin, end), at most kGroup, of out. `kernel` is [out_channels / kLanes, 36,
/// in_channels, kLanes]; `bias`, which may be null, is [out_channels].
void convolve(const Tiling& t, const float* in, const float* kernel, const float* bias, float* out,
              size_t begin, size_t end, float* scratch);
void convolve(const Tiling& t, const bf16* in, const float* kernel, const float* bias, bf16* out,
              size_t begin, size_t end, float* scratch);

/// A range of blocks of kLanes output channels.
struct Blocks {
  size_t begin, end;
};

/// Adds what the tiles [begin, end), at most kGroup, contribute to the transformed gradient of the
/// kernel, and unless it is null to that of the bias, for some output channels. `sums` is
/// [out_channels / kLanes, in_channels / kLanes, 36, kLanes (out), kLanes (in)], `bias`
/// [out_channels].
void correlate(const Tiling& t, const float* in, const float* out_gradient, size_t begin,
               size_t end, Blocks outputs, float* sums, float* bias, float* scratch);
void correlate(const Tiling& t, const bf16* in, const bf16* out_gradient, size_t begin, size_t end,
               Blocks outputs, float* sums, float* bias, float* scratch);

/// Adds up `parts` arrays of sums, `stride` floats apart, for one block of output channels, and
/// writes, or with `accumulate` adds, the gradient of the OHWI weights, which begin at dw.
void gradient_of_kernel(const Tiling& t, const float* sums, size_t parts, size_t stride,
                        size_t output_block, float* dw, bool accumulate);

}  // namespace tw::ops::winograd
