// UnaryLayer: base of layers with one input, one output and a gradient that must be one tensor.
#pragma once

#include "layers/gradient_sum.h"

namespace tw::layers {

/// Holds x, y, dy and dx, and adds the two tensors of an incoming Gradient before backward.
class UnaryLayer : public Layer {
 public:
  TensorRef plan_forward(Planner& plan, TensorRef x) final {
    x_ = x;
    y_ = plan_y(plan);
    return y_;
  }
  Gradient plan_backward(Planner& plan, Gradient dy) final {
    dy_ = sum_.plan(plan, dy);
    dx_ = plan_dx(plan);
    return {dx_};
  }
  void backward(const PassArgs& pass) final {
    sum_.run(pass.ctx);
    run_backward(pass);
  }

 protected:
  /// Declares and returns y for x_; declares what forward uses.
  virtual TensorRef plan_y(Planner& plan) = 0;
  /// Declares and returns dx, which may be dy_; declares what backward uses. Empty: no dx. By
  /// default a tensor like x, and backward reads dy.
  virtual TensorRef plan_dx(Planner& plan) {
    const TensorRef dx = plan.make(x_->shape);
    plan.use({dy_, dx});
    return dx;
  }
  /// Reads dy_, the whole gradient of y; writes dx_ and parameter gradients.
  virtual void run_backward(const PassArgs& pass) = 0;

  TensorRef x_, y_, dy_, dx_;

 private:
  GradientSum sum_;
};

}  // namespace tw::layers
