#include "layers/residual.h"

namespace tw::layers {

Residual::Residual(LayerPtr main, std::unique_ptr<BatchNorm> join, LayerPtr shortcut)
    : main_(std::move(main)), join_(std::move(join)), shortcut_(std::move(shortcut)) {}

TensorRef Residual::plan_forward(Planner& plan, TensorRef x) {
  const TensorRef main = main_->plan_forward(plan, x);
  const TensorRef shortcut = shortcut_ ? shortcut_->plan_forward(plan, x) : x;
  return join_->plan_forward(plan, main, shortcut);
}

Gradient Residual::plan_backward(Planner& plan, Gradient dy) {
  const Gradient joined = join_->plan_backward(plan, dy);
  Gradient shortcut{join_->residual_gradient()};
  if (shortcut_) shortcut = shortcut_->plan_backward(plan, shortcut);
  const TensorRef from_shortcut = shortcut_sum_.plan(plan, shortcut);
  const TensorRef from_main = main_sum_.plan(plan, main_->plan_backward(plan, joined));
  if (!input_gradient_) return {};
  return {from_main, from_shortcut};
}

void Residual::refresh(Context& ctx, ops::Transfers& later) {
  main_->refresh(ctx, later);
  if (shortcut_) shortcut_->refresh(ctx, later);
}

void Residual::forward(const PassArgs& pass) {
  main_->forward(pass);
  if (shortcut_) shortcut_->forward(pass);
  join_->forward(pass);
}

void Residual::backward(const PassArgs& pass) {
  join_->backward(pass);
  if (shortcut_) shortcut_->backward(pass);
  shortcut_sum_.run(pass.ctx);
  main_->backward(pass);
  main_sum_.run(pass.ctx);
}

void Residual::skip_input_gradient() {
  input_gradient_ = false;
  main_->skip_input_gradient();
  if (shortcut_) shortcut_->skip_input_gradient();
}

size_t Residual::describe(NetworkGraph& graph, size_t x) const {
  const size_t main = main_->describe(graph, x);
  const size_t shortcut = shortcut_ ? shortcut_->describe(graph, x) : x;
  return join_->describe(graph, main, shortcut);
}

}  // namespace tw::layers
