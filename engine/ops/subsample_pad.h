// The parameter-free shortcut of CIFAR ResNets: option A of He et al., CVPR 2016.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y[n,p,q,:] = (zeros, x[n,p*stride,q*stride,:], zeros): x [N,H,W,C], y [N,ceil(H/stride),
/// ceil(W/stride),D], D >= C; of the D - C extra channels half (rounded down) come first.
void subsample_pad_forward(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y);
void subsample_pad_backward(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx);

inline constinit DispatchTable<decltype(subsample_pad_forward)> subsample_pad_forward_dispatch{
    "subsample_pad_forward"};
inline constinit DispatchTable<decltype(subsample_pad_backward)> subsample_pad_backward_dispatch{
    "subsample_pad_backward"};

}  // namespace tw::ops
