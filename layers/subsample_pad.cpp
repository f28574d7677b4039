#include "layers/subsample_pad.h"

#include "engine/ops/subsample_pad.h"

namespace tw::layers {

TensorRef SubsamplePad::plan_forward(Planner& plan, TensorRef x) {
  const auto kept = [&](int64_t n) { return (n + options_.stride - 1) / options_.stride; };
  x_ = x;
  y_ = plan.make({x->shape[0], kept(x->shape[1]), kept(x->shape[2]), options_.out});
  plan.use({x_, y_});
  return y_;
}

Gradient SubsamplePad::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  dx_ = plan.make(x_->shape);
  plan.use({dy_, dx_});
  return {dx_};
}

void SubsamplePad::forward(const PassArgs& pass) {
  ops::subsample_pad_forward(pass.ctx, options_.stride, *x_, *y_);
}

void SubsamplePad::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  ops::subsample_pad_backward(pass.ctx, options_.stride, *dy_, *dx_);
}

}  // namespace tw::layers
