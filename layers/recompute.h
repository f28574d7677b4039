// Recompute: discards the activations of a layer after forward and recomputes them in backward.
// (Chen et al. 2016, "Training deep nets with sublinear memory cost", arXiv:1604.06174)
#pragma once

#include "layers/layer.h"

namespace tw::layers {

/// Active when Planner::recompute is set. The bits do not change: dropout draws the same masks
/// again, and batch norms do not update their running statistics twice.
class Recompute final : public Layer {
 public:
  explicit Recompute(LayerPtr inner) : inner_(std::move(inner)) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx, ops::Transfers& later) override { inner_->refresh(ctx, later); }
  void forward(const PassArgs& pass) override { inner_->forward(pass); }
  void backward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override {
    return inner_->describe(graph, x);
  }
  bool has_parameters() const override { return inner_->has_parameters(); }
  void skip_input_gradient() override { inner_->skip_input_gradient(); }

 private:
  LayerPtr inner_;
  bool active_ = false;
  Planner::Position begin_{}, end_{};  // of forward
};

}  // namespace tw::layers
