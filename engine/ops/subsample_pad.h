// The parameter-free shortcut of CIFAR ResNets: option A of He et al., CVPR 2016.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y[n,p,q,:] = (zeros, x[n,p*stride,q*stride,:], zeros): x [N,H,W,C], y [N,ceil(H/stride),
/// ceil(W/stride),D], D >= C; of the D - C extra channels half (rounded down) come first.
void subsample_pad_forward(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y);
void subsample_pad_backward(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx);

using SubsamplePadFunction = void(Context&, int64_t, const Tensor&, const Tensor&);
extern DispatchTable<SubsamplePadFunction> subsample_pad_forward_dispatch,
    subsample_pad_backward_dispatch;

}  // namespace tw::ops
