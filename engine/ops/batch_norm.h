// Batch norm over N, H, W for each channel, with an optional fused residual add and ReLU:
//   y = relu?( (x - mean) * rstd * gamma + beta  [+ residual] )
// Statistics, gamma and beta are always fp32.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

struct BatchNormParams {
  float epsilon = 1e-5f;
  float momentum = 0.1f;  ///< PyTorch's: running = (1 - momentum) * running + momentum * batch
  bool relu = false;
};

/// Tensors of forward; all [C] tensors are fp32.
struct BatchNormForward {
  Tensor x, residual, y;             ///< [N,H,W,C] of one dtype; residual.data may be null
  Tensor gamma, beta;                ///< [C]
  Tensor running_mean, running_var;  ///< [C]; var is the unbiased estimate, as in PyTorch
  Tensor saved_mean, saved_rstd;     ///< [C], written by training, read by backward
};

/// Tensors of backward. The gradient of y is dy, or dy + dy2 if two branches read y. With
/// relu it is masked by y > 0. Without a residual, y.data may be null: the mask is then recomputed
/// from x, gamma and beta, which reads one tensor less.
struct BatchNormBackward {
  Tensor x, y, dy, dy2;  ///< y is unused without relu; dy2.data may be null
  Tensor dx, dresidual;  ///< dresidual.data may be null; it may equal dy.data (in place)
  Tensor gamma, beta, saved_mean, saved_rstd;  ///< beta is read only for a mask without y
  Tensor dgamma, dbeta;                        ///< [C], written or (accumulate) added to
};

/// Bytes of Context::scratch() for an input of shape x.
size_t batch_norm_scratch_bytes(const Context& ctx, const Shape& x);

/// Normalises by the batch's own mean and variance and updates the running statistics.
void batch_norm_train(Context& ctx, const BatchNormParams& params, const BatchNormForward& t);
/// Normalises by the running statistics.
void batch_norm_infer(Context& ctx, const BatchNormParams& params, const BatchNormForward& t);
void batch_norm_backward(Context& ctx, const BatchNormParams& params, const BatchNormBackward& t,
                         bool accumulate);

inline constinit DispatchTable<decltype(batch_norm_train)> batch_norm_train_dispatch{
    "batch_norm_train"};
inline constinit DispatchTable<decltype(batch_norm_infer)> batch_norm_infer_dispatch{
    "batch_norm_infer"};
inline constinit DispatchTable<decltype(batch_norm_backward)> batch_norm_backward_dispatch{
    "batch_norm_backward"};
inline constinit DispatchTable<size_t(const Context&, const Shape&)> batch_norm_scratch_dispatch{
    "batch_norm"};

}  // namespace tw::ops
