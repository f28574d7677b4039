#include "layers/pooling.h"

#include "engine/ops/global_average.h"
#include "engine/ops/subsample_pad.h"

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

TensorRef GlobalAverage::plan_y(Planner& plan) {
  const TensorRef y = plan.make({x_->shape[0], x_->shape[3]});
  plan.use({x_, y});
  return y;
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

TensorRef SubsamplePad::plan_y(Planner& plan) {
  const auto kept = [&](int64_t n) { return (n + options_.stride - 1) / options_.stride; };
  const TensorRef y =
      plan.make({x_->shape[0], kept(x_->shape[1]), kept(x_->shape[2]), options_.out});
  plan.use({x_, y});
  return y;
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
