// Hot loops of CPU batch norm. A [rows, C] matrix is read as [rows / fold, fold * C], so that few
// channels (3, 16) still fill whole SIMD vectors. Per-channel coefficients are repeated `fold`
// times.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "engine/ops/element.h"

namespace tw::ops::bn {

/// Coefficients of forward, each `width` = fold * C long.
struct Forward {
  const float *mean, *scale, *beta;
  bool relu;
  size_t width;
};

/// Source of the ReLU's mask.
enum class Mask { none, output, input };

/// Tensors and coefficients of backward. The masked gradient is g.
template <class T>
struct Backward {
  const T *x, *y, *dy, *dy2;  ///< y only for Mask::output; dy2 may be null
  T* kept;                    ///< receives g; may be null unless there is dy2, may equal dy
  T* dx;                      ///< scale * g + slope * (x - mean) + offset
  const float *mean, *scale, *beta, *slope, *offset;
  Mask mask;
  size_t width;
};

}  // namespace tw::ops::bn

#define TW_KERNELS "engine/ops/batch_norm_loops.h"
#include "engine/core/each_instruction_set.h"
