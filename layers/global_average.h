// Global average pooling: the mean of each channel over the image.
#pragma once

#include "layers/unary_layer.h"

namespace tw::layers {

/// [N,H,W,C] -> [N,C], in the dtype of the activations.
class GlobalAverage final : public UnaryLayer {
 public:
  struct Options {};
  explicit GlobalAverage(const Options&) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;
};

}  // namespace tw::layers
