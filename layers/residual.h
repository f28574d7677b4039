// Residual block: y = relu(bn(main(x)) + shortcut(x)). (He et al., CVPR 2016)
#pragma once

#include "layers/batch_norm.h"
#include "layers/gradient_sum.h"

namespace tw::layers {

class Residual final : public Layer {
 public:
  /// `join` is the last batch norm of the main path: it adds the shortcut and applies the ReLU.
  /// A null shortcut is the identity.
  Residual(LayerPtr main, std::unique_ptr<BatchNorm> join, LayerPtr shortcut);

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  /// Returns the gradients of the two branches, not yet added.
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx, ops::Transfers& later) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;
  bool has_parameters() const override { return true; }
  void skip_input_gradient() override;

 private:
  LayerPtr main_;
  std::unique_ptr<BatchNorm> join_;
  LayerPtr shortcut_;  // null: identity
  bool input_gradient_ = true;
  GradientSum main_sum_, shortcut_sum_;  // a branch may begin with a residual block
};

}  // namespace tw::layers
