// Recompute: a layer whose activations are forgotten after forward and computed again in backward.
// (Chen et al. 2016, "Training deep nets with sublinear memory cost", arXiv:1604.06174)
#pragma once

#include "layers/layer.h"

namespace tw::layers {

/// Does so when the plan asks for it, else nothing. The same operations on the same input give the
/// same bits: dropout draws its masks again, and batch norms leave their running statistics alone.
class Recompute final : public Layer {
 public:
  explicit Recompute(LayerPtr inner) : inner_(std::move(inner)) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx) override { inner_->refresh(ctx); }
  void forward(const PassArgs& pass) override { inner_->forward(pass); }
  void backward(const PassArgs& pass) override;
  bool skip_input_gradient() override { return inner_->skip_input_gradient(); }

 private:
  LayerPtr inner_;
  bool active_ = false;
  Planner::Mark begin_{}, end_{};  // of forward
};

}  // namespace tw::layers
