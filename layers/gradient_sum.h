// GradientSum: for layers that need their incoming gradient as one tensor.
#pragma once

#include "engine/ops/vector.h"
#include "layers/layer.h"

namespace tw::layers {

class GradientSum {
 public:
  /// Plans the addition, if there is one to make; returns the tensor that will hold the sum.
  TensorRef plan(Planner& plan, const Gradient& dy) {
    dy_ = dy;
    if (dy.extra) plan.use({dy.main, dy.extra});
    return dy.main;
  }
  /// To be called first in backward.
  void run(Context& ctx) const {
    if (dy_.extra) ops::add(ctx, *dy_.extra, *dy_.main);
  }

 private:
  Gradient dy_;
};

}  // namespace tw::layers
