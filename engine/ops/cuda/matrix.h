// Bias and column sums of [rows, channels] matrices, for linear layers and
// convolutions. Included by files in cuda/ only.
#pragma once

#include "engine/core/tensor.h"
#include "engine/cuda/cuda.h"

namespace tw::ops {

/// y[r,c] = x[r,c] + bias[c]; x is f32 or of y's dtype and may be y; `bias` holds y's last
/// dimension.
void add_bias(Context& ctx, const Tensor& x, const float* bias, const Tensor& y);

/// sums[c] = the sum of x[r,c] over the rows, or, with `accumulate`, sums[c] += that sum.
/// `scratch` holds column_sums_bytes(). Unless it is null, `rounded` becomes x.
void column_sums(Context& ctx, const Tensor& x, std::byte* scratch, bool accumulate, float* sums,
                 bf16* rounded = nullptr);
size_t column_sums_bytes(const Shape& x);

/// The next multiple of 256 bytes, where a buffer may begin.
inline size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace tw::ops
