// ReLU on its own, for networks without batch norm.
#pragma once

#include "layers/gradient_sum.h"

namespace tw::layers {

class Relu final : public Layer {
 public:
  struct Options {};
  explicit Relu(const Options&) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;

 private:
  TensorRef x_, y_, dy_;
  GradientSum sum_;
};

}  // namespace tw::layers
