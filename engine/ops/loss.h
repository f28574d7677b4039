// Softmax cross-entropy with label smoothing, and the counts for accuracy.
#pragma once

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// Sums over the labelled rows of one batch.
struct LossSums {
  double loss = 0;  ///< sum of cross-entropies (natural logarithm)
  int64_t top1 = 0, top5 = 0, count = 0;

  constexpr LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    top1 += other.top1;
    top5 += other.top5;
    count += other.count;
    return *this;
  }
};
/// Shape of a u8 tensor that holds one.
inline const Shape kLossSumsShape{static_cast<int64_t>(sizeof(LossSums))};

/// logits [N,C] fp32, labels [N] i32; rows with a negative label are padding and not counted. Adds
/// the batch's sums to `sums`, a LossSums on the device seen as u8 [sizeof(LossSums)]. With
/// dlogits.data: writes d(mean loss over the counted rows * grad_scale)/dlogits. A row counts as
/// top-1 (top-5) correct when fewer than 1 (5) classes rank above its label. Of equal logits the
/// lower class ranks first. A label >= C: UserError on the CPU, a loss of NaN on a GPU.
void softmax_cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels,
                           float label_smoothing, float grad_scale, const Tensor& dlogits,
                           const Tensor& sums);

/// Copies `sums` to the host and resets them to 0; waits for the device.
LossSums take_sums(Context& ctx, const Tensor& sums);

inline constinit DispatchTable<decltype(softmax_cross_entropy)> softmax_cross_entropy_dispatch{
    "softmax_cross_entropy"};

}  // namespace tw::ops
