#include "layers/dropout.h"

#include "engine/ops/dropout.h"

namespace tw::layers {

TensorRef Dropout::plan_forward(Planner& plan, TensorRef x) {
  x_ = x;
  y_ = plan.make(x->shape);
  plan.use({x_, y_});
  return y_;
}

Gradient Dropout::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  plan.use({dy_});
  return {dy_};  // masked in place
}

void Dropout::drop(const PassArgs& pass, const Tensor& from, const Tensor& to) const {
  const Philox philox(pass.seed, Purpose::dropout, options_.stream);
  ops::dropout(pass.ctx, options_.rate, philox, pass.step, from, to);
}

void Dropout::forward(const PassArgs& pass) {
  if (pass.training)
    drop(pass, *x_, *y_);
  else
    ops::convert(pass.ctx, *x_, *y_);
}

void Dropout::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  drop(pass, *dy_, *dy_);
}

}  // namespace tw::layers
