// Softmax cross-entropy with label smoothing, and the counts that accuracy is made of.
#pragma once

#include "engine/context.h"
#include "engine/tensor.h"

namespace tw::ops {

/// Sums over the labelled rows of one batch.
struct LossSums {
  double loss = 0;  ///< sum of cross-entropies (natural logarithm)
  int64_t top1 = 0, top5 = 0, count = 0;
};

/// logits [N,C] fp32, labels [N] i32; rows with a negative label are padding and count nowhere.
/// With dlogits.data: writes d(mean loss over the counted rows * grad_scale)/dlogits.
/// A row is right when fewer than 1 (5) other classes have a larger logit; equal logits go to the
/// lower class.
LossSums softmax_cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels,
                               float label_smoothing, float grad_scale, const Tensor& dlogits);

using SoftmaxCrossEntropyBody = LossSums(Context&, const Tensor&, const Tensor&, float, float,
                                         const Tensor&);
extern Bodies<SoftmaxCrossEntropyBody> softmax_cross_entropy_bodies;

}  // namespace tw::ops
