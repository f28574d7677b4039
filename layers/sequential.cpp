#include "layers/sequential.h"

#include <algorithm>

namespace tw::layers {

TensorRef Sequential::plan_forward(Planner& plan, TensorRef x) {
  for (const LayerPtr& layer : layers_) x = layer->plan_forward(plan, x);
  return x;
}

Gradient Sequential::plan_backward(Planner& plan, Gradient dy) {
  for (size_t i = layers_.size(); i-- > first_;) dy = layers_[i]->plan_backward(plan, dy);
  return dy;
}

void Sequential::refresh(Context& ctx, ops::Transfers& later) {
  for (const LayerPtr& layer : layers_) layer->refresh(ctx, later);
}

void Sequential::forward(const PassArgs& pass) {
  for (const LayerPtr& layer : layers_) layer->forward(pass);
}

void Sequential::backward(const PassArgs& pass) {
  for (size_t i = layers_.size(); i-- > first_;) layers_[i]->backward(pass);
}

bool Sequential::has_parameters() const {
  return std::ranges::any_of(layers_, &Layer::has_parameters);
}

void Sequential::skip_input_gradient() {
  const auto first = std::ranges::find_if(layers_, &Layer::has_parameters);
  first_ = static_cast<size_t>(first - layers_.begin());
  if (first != layers_.end()) (*first)->skip_input_gradient();
}

size_t Sequential::describe(NetworkGraph& graph, size_t x) const {
  for (const LayerPtr& layer : layers_) x = layer->describe(graph, x);
  return x;
}

}  // namespace tw::layers
