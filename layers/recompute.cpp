#include "layers/recompute.h"

namespace tw::layers {

TensorRef Recompute::plan_forward(Planner& plan, TensorRef x) {
  active_ = plan.recompute;
  begin_ = plan.position();
  const TensorRef y = inner_->plan_forward(plan, x);
  end_ = plan.position();
  return y;
}

Gradient Recompute::plan_backward(Planner& plan, Gradient dy) {
  if (active_) plan.recompute_range(begin_, end_);
  return inner_->plan_backward(plan, dy);
}

void Recompute::backward(const PassArgs& pass) {
  if (active_) {
    PassArgs forward_pass = pass;
    forward_pass.momentum = 0;
    inner_->forward(forward_pass);
  }
  inner_->backward(pass);
}

}  // namespace tw::layers
