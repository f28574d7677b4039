// GradientSum: adds the two tensors of a Gradient for layers that need one.
#pragma once

#include "engine/ops/vector.h"
#include "layers/layer.h"

namespace tw::layers {

class GradientSum {
 public:
  /// Plans the addition, if there are two tensors; returns the tensor that holds the sum.
  TensorRef plan(Planner& plan, const Gradient& dy) {
    dy_ = dy;
    if (dy.extra) plan.use({dy.main, dy.extra});
    return dy.main;
  }
  /// Adds; called first in backward.
  void run(Context& ctx) const {
    if (dy_.extra) ops::add(ctx, *dy_.extra, *dy_.main);
  }

 private:
  Gradient dy_;
};

}  // namespace tw::layers
