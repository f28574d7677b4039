#include "layers/pool.h"

namespace tw::layers {

TensorRef Pool::plan_y(Planner& plan) {
  const TensorRef y = plan.make(options_.output(x_->shape));
  if (options_.kind == ops::PoolKind::max) argmax_ = plan.make(y->shape, DType::u8);
  plan.use({x_, y, argmax_});
  return y;
}

TensorRef Pool::plan_dx(Planner& plan) {
  const TensorRef dx = plan.make(x_->shape);
  plan.use({dy_, argmax_, dx});
  return dx;
}

void Pool::forward(const PassArgs& pass) {
  ops::pool_forward(pass.ctx, options_, *x_, *y_, argmax());
}

void Pool::run_backward(const PassArgs& pass) {
  ops::pool_backward(pass.ctx, options_, *dy_, argmax(), *dx_);
}

TensorRef GlobalAverage::plan_y(Planner& plan) {
  const TensorRef y = plan.make({x_->shape[0], x_->shape[3]});
  plan.use({x_, y});
  return y;
}

TensorRef GlobalAverage::plan_dx(Planner& plan) {
  const TensorRef dx = plan.make(x_->shape);
  plan.use({dy_, dx});
  return dx;
}

void GlobalAverage::forward(const PassArgs& pass) {
  ops::global_average_forward(pass.ctx, *x_, *y_);
}

void GlobalAverage::run_backward(const PassArgs& pass) {
  ops::global_average_backward(pass.ctx, *dy_, *dx_);
}

}  // namespace tw::layers
