#include "layers/subsample_pad.h"

#include "engine/ops/subsample_pad.h"

namespace tw::layers {

TensorRef SubsamplePad::plan_y(Planner& plan) {
  const auto kept = [&](int64_t n) { return (n + options_.stride - 1) / options_.stride; };
  const TensorRef y =
      plan.make({x_->shape[0], kept(x_->shape[1]), kept(x_->shape[2]), options_.out});
  plan.use({x_, y});
  return y;
}

TensorRef SubsamplePad::plan_dx(Planner& plan) {
  const TensorRef dx = plan.make(x_->shape);
  plan.use({dy_, dx});
  return dx;
}

void SubsamplePad::forward(const PassArgs& pass) {
  ops::subsample_pad_forward(pass.ctx, options_.stride, *x_, *y_);
}

void SubsamplePad::run_backward(const PassArgs& pass) {
  ops::subsample_pad_backward(pass.ctx, options_.stride, *dy_, *dx_);
}

size_t SubsamplePad::describe(NetworkGraph& graph, size_t x) const {
  return graph.add(NetworkGraph::SubsamplePad{x_->shape[3], options_.out, options_.stride}, {x});
}

}  // namespace tw::layers
