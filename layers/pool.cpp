#include "layers/pool.h"

namespace tw::layers {

TensorRef Pool::plan_forward(Planner& plan, TensorRef x) {
  x_ = x;
  y_ = plan.make(options_.output(x->shape));
  if (options_.kind == ops::PoolKind::max) argmax_ = plan.make(y_->shape, DType::u8);
  plan.use({x_, y_, argmax_});
  return y_;
}

Gradient Pool::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  dx_ = plan.make(x_->shape);
  plan.use({dy_, argmax_, dx_});
  return {dx_};
}

void Pool::forward(const PassArgs& pass) {
  ops::pool_forward(pass.ctx, options_, *x_, *y_, argmax());
}

void Pool::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  ops::pool_backward(pass.ctx, options_, *dy_, argmax(), *dx_);
}

TensorRef GlobalAverage::plan_forward(Planner& plan, TensorRef x) {
  x_ = x;
  y_ = plan.make({x->shape[0], x->shape[3]});
  plan.use({x_, y_});
  return y_;
}

Gradient GlobalAverage::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  dx_ = plan.make(x_->shape);
  plan.use({dy_, dx_});
  return {dx_};
}

void GlobalAverage::forward(const PassArgs& pass) {
  ops::global_average_forward(pass.ctx, *x_, *y_);
}

void GlobalAverage::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  ops::global_average_backward(pass.ctx, *dy_, *dx_);
}

}  // namespace tw::layers
