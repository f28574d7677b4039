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

size_t Pool::describe(NetworkGraph& graph, size_t x) const { return graph.add(options_, {x}); }

}  // namespace tw::layers
