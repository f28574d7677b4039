// Batch norm layer with an optional fused residual add and ReLU: `<name>.weight` (gamma),
// `<name>.bias` (beta), and the statistics `<name>.running_mean`, `<name>.running_var`.
#pragma once

#include <optional>
#include <string>

#include "engine/ops/batch_norm.h"
#include "layers/layer.h"

namespace tw::layers {

class BatchNorm final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t channels;
    bool relu = false;
    float epsilon = 1e-5f, momentum = 0.1f;  ///< momentum as in PyTorch
    Init scale = Init::ones;                 ///< of gamma
  };

  BatchNorm(ParameterArena& arena, const Options& options);

  TensorRef plan_forward(Planner& plan, TensorRef x) override { return plan_forward(plan, x, {}); }
  /// y = relu?(bn(x) + residual)
  TensorRef plan_forward(Planner& plan, TensorRef x, TensorRef residual);
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  /// The gradient of the residual; planned by plan_backward.
  TensorRef residual_gradient() const { return dresidual_; }

  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;
  /// The same with the residual that is added before the ReLU.
  size_t describe(NetworkGraph& graph, size_t x, std::optional<size_t> residual) const;
  /// Computes dx even where nothing reads it, at almost no extra cost.
  bool has_parameters() const override { return true; }

 private:
  ParameterArena& arena_;
  ops::BatchNormParams params_;
  int64_t channels_;
  const Parameter *gamma_, *beta_, *running_mean_, *running_var_;
  TensorRef x_, residual_, y_, mean_, rstd_, mask_, dx_, dresidual_;
  Gradient dy_;  // the kernel adds the two tensors
};

}  // namespace tw::layers
