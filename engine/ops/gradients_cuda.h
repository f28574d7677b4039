// What follows a backward pass on a GPU: the delivery of weight gradients that kernels left in
// another memory and type, and the check of all gradients. Both are one launch.
// Included by .cu files and files in cuda/ only.
#pragma once

#include <span>

#include "engine/core/tensor.h"
#include "engine/cuda/cuda.h"

namespace tw::ops {

/// y = x, or, with `accumulate`, y += x; x is bf16 or f32, y f32 of as many elements. Between
/// hold_deliveries and the end of backward this is deferred, and x must stay as it is.
void deliver(Context& ctx, const Tensor& x, bool accumulate, float* y);

/// Lowers *first to the index of the first NaN or infinity in x, if there is one; *first is in
/// device memory.
void check_gradients(Context& ctx, std::span<const float> x, unsigned long long* first);

/// Runs the deferred deliveries, and lowers *first to the index of the first NaN or infinity in
/// `gradients`, if there is one. `gradients` contains all destinations.
void deliver_and_check(Context& ctx, std::span<const float> gradients, unsigned long long* first);

}  // namespace tw::ops
