// ReLU. The one after a batch norm is fused into batch_norm.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y = max(x, 0); NaN stays NaN. y may be x.
void relu_forward(Context& ctx, const Tensor& x, const Tensor& y);
/// dx = dy where y > 0; dx may be dy.
void relu_backward(Context& ctx, const Tensor& y, const Tensor& dy, const Tensor& dx);

inline constinit DispatchTable<decltype(relu_forward)> relu_forward_dispatch{"relu_forward"};
inline constinit DispatchTable<decltype(relu_backward)> relu_backward_dispatch{"relu_backward"};

}  // namespace tw::ops
