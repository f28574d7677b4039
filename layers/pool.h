// Pooling: maximum or average over windows.
#pragma once

#include "engine/ops/pool.h"
#include "layers/unary_layer.h"

namespace tw::layers {

class Pool final : public UnaryLayer {
 public:
  using Options = ops::PoolParams;
  explicit Pool(const Options& options) : options_(options) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;

  Tensor argmax() const { return argmax_ ? *argmax_ : Tensor{}; }

  Options options_;
  TensorRef argmax_;
};

}  // namespace tw::layers
