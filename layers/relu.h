// ReLU layer for networks without batch norm; BatchNorm fuses its own.
#pragma once

#include "layers/unary_layer.h"

namespace tw::layers {

class Relu final : public UnaryLayer {
 public:
  struct Options {};
  explicit Relu(const Options&) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;
};

}  // namespace tw::layers
