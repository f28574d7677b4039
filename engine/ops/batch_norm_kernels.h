// Hot loops of CPU batch norm. A [rows, C] matrix is read as [rows / fold, fold * C], so that few
// channels (3, 16) still fill whole SIMD vectors. Per-channel coefficients are repeated `fold`
// times.
#pragma once

#include <cstddef>

#include "engine/core/dtype.h"

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

// Each function below handles n elements from the start of a folded row. `sums` is [2, width].

/// sums = sum of d and of d * d, where d = x - shift.
void forward_sums(const float* x, const float* shift, size_t width, size_t n, float* sums);
void forward_sums(const bf16* x, const float* shift, size_t width, size_t n, float* sums);

/// y = relu?((x - mean) * scale + beta [+ residual])
void normalise(const Forward& f, const float* x, const float* residual, float* y, size_t n);
void normalise(const Forward& f, const bf16* x, const bf16* residual, bf16* y, size_t n);

/// sums = sum of g and of g * (x - mean); writes g to `kept`. Elements [begin, begin + n).
void backward_sums(const Backward<float>& b, size_t begin, size_t n, float* sums);
void backward_sums(const Backward<bf16>& b, size_t begin, size_t n, float* sums);

/// dx for elements [begin, begin + n); reads g from `kept` unless it is null.
void input_gradient(const Backward<float>& b, size_t begin, size_t n);
void input_gradient(const Backward<bf16>& b, size_t begin, size_t n);

}  // namespace tw::ops::bn
