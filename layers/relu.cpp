#include "layers/relu.h"

#include "engine/ops/relu.h"

namespace tw::layers {

TensorRef Relu::plan_forward(Planner& plan, TensorRef x) {
  x_ = x;
  y_ = plan.make(x->shape);
  plan.use({x_, y_});
  return y_;
}

Gradient Relu::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  plan.use({y_, dy_});
  return {dy_};  // masked in place
}

void Relu::forward(const PassArgs& pass) { ops::relu_forward(pass.ctx, *x_, *y_); }

void Relu::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  ops::relu_backward(pass.ctx, *y_, *dy_, *dy_);
}

}  // namespace tw::layers
