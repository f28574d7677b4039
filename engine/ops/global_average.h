// Global average pooling, NHWC.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y [N,C] = mean of x [N,H,W,C] over H and W.
void global_average_forward(Context& ctx, const Tensor& x, const Tensor& y);
void global_average_backward(Context& ctx, const Tensor& dy, const Tensor& dx);

using GlobalAverageFunction = void(Context&, const Tensor&, const Tensor&);
extern DispatchTable<GlobalAverageFunction> global_average_forward_dispatch,
    global_average_backward_dispatch;

}  // namespace tw::ops
