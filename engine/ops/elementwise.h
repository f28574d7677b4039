// Small memory-bound ops: fill, add, ReLU, dropout, input normalisation, dtype conversion,
// and the parameter-free shortcut of CIFAR ResNets.
#pragma once

#include <span>

#include "engine/context.h"
#include "engine/rng.h"
#include "engine/tensor.h"

namespace tw::ops {

/// x = value, for fp32.
void fill(Context& ctx, std::span<float> x, float value);
/// y += x, for fp32 vectors of equal length.
void add(Context& ctx, std::span<const float> x, std::span<float> y);
/// y += x, for activations of one dtype.
void add(Context& ctx, const Tensor& x, const Tensor& y);
/// Copies x to y, converting between f32 and bf16.
void convert(Context& ctx, const Tensor& x, const Tensor& y);

void relu_forward(Context& ctx, const Tensor& x, const Tensor& y);
/// dx = dy where y > 0; dx may be dy.
void relu_backward(Context& ctx, const Tensor& y, const Tensor& dy, const Tensor& dx);

/// y = x / (1 - rate) with probability 1 - rate, else 0. Element i draws from philox(step, i / 4).
/// Backward is the same call on the gradient. y may be x.
void dropout(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
             const Tensor& y);

/// y = (x / 255 - mean[c]) / deviation[c]; x is u8 [N,H,W,C], y is f32 or bf16.
void normalize(Context& ctx, const Tensor& x, std::span<const float> mean,
               std::span<const float> deviation, const Tensor& y);

/// y[n,p,q,:] = (zeros, x[n,p*stride,q*stride,:], zeros): shortcut A of He et al. 2015, the extra
/// channels split evenly in front and behind.
void subsample_pad_forward(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y);
void subsample_pad_backward(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx);

}  // namespace tw::ops
