#include "layers/activation.h"

#include "engine/ops/dropout.h"
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

TensorRef Dropout::plan_y(Planner& plan) {
  const TensorRef y = plan.make(x_->shape);
  plan.use({x_, y});
  return y;
}

TensorRef Dropout::plan_dx(Planner& plan) {
  plan.use({dy_});
  return dy_;  // masked in place
}

void Dropout::drop(const PassArgs& pass, const Tensor& from, const Tensor& to) const {
  const Philox philox(pass.seed, Purpose::dropout, options_.stream);
  ops::dropout(pass.ctx, options_.rate, philox, pass.step, from, to, pass.recorded);
}

void Dropout::forward(const PassArgs& pass) {
  if (pass.training)
    drop(pass, *x_, *y_);
  else
    ops::convert(pass.ctx, *x_, *y_);
}

void Dropout::run_backward(const PassArgs& pass) { drop(pass, *dy_, *dy_); }

size_t Dropout::describe(NetworkGraph&, size_t x) const { return x; }

}  // namespace tw::layers
