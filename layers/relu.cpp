#include "layers/relu.h"

#include "engine/ops/relu.h"

namespace tw::layers {

TensorRef Relu::plan_y(Planner& plan) {
  const TensorRef y = plan.make(x_->shape);
  plan.use({x_, y});
  return y;
}

TensorRef Relu::plan_dx(Planner& plan) {
  plan.use({y_, dy_});
  return dy_;  // masked in place
}

void Relu::forward(const PassArgs& pass) { ops::relu_forward(pass.ctx, *x_, *y_); }

void Relu::run_backward(const PassArgs& pass) { ops::relu_backward(pass.ctx, *y_, *dy_, *dy_); }

size_t Relu::describe(NetworkGraph& graph, size_t x) const {
  return graph.add(NetworkGraph::Relu{}, {x});
}

}  // namespace tw::layers
