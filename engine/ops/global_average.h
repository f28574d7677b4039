// Global average pooling, NHWC.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y [N,C] = mean of x [N,H,W,C] over H and W.
void global_average_forward(Context& ctx, const Tensor& x, const Tensor& y);
void global_average_backward(Context& ctx, const Tensor& dy, const Tensor& dx);

inline constinit DispatchTable<decltype(global_average_forward)> global_average_forward_dispatch{
    "global_average_forward"};
inline constinit DispatchTable<decltype(global_average_backward)> global_average_backward_dispatch{
    "global_average_backward"};

}  // namespace tw::ops
