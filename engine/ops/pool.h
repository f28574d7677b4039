// Max and average pooling, NHWC.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

enum class PoolKind : uint8_t { max, average };

struct PoolParams {
  PoolKind kind = PoolKind::max;
  int64_t kernel = 2, stride = 2, padding = 0;
  /// Output shape for an input [N,H,W,C]; throws UserError when it would be empty.
  Shape output(const Shape& x) const;
};

/// `argmax` (u8, shape of y) receives the position of the maximum inside its window (first one on
/// a tie; padding never wins); unused for average. Average divides by kernel*kernel (padding
/// counts, as in PyTorch).
void pool_forward(Context& ctx, const PoolParams& params, const Tensor& x, const Tensor& y,
                  const Tensor& argmax);
void pool_backward(Context& ctx, const PoolParams& params, const Tensor& dy, const Tensor& argmax,
                   const Tensor& dx);

inline constinit DispatchTable<decltype(pool_forward)> pool_forward_dispatch{"pool_forward"};
inline constinit DispatchTable<decltype(pool_backward)> pool_backward_dispatch{"pool_backward"};

}  // namespace tw::ops
