#include "layers/global_average.h"

#include "engine/ops/global_average.h"

namespace tw::layers {

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

size_t GlobalAverage::describe(NetworkGraph& graph, size_t x) const {
  return graph.add(NetworkGraph::GlobalAverage{}, {x});
}

}  // namespace tw::layers
