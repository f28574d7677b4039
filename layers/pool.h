// Pooling layers: windows (maximum or average), and the average over the whole image.
#pragma once

#include "engine/ops/pool.h"
#include "layers/gradient_sum.h"

namespace tw::layers {

class Pool final : public Layer {
 public:
  using Options = ops::PoolParams;
  explicit Pool(const Options& options) : options_(options) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;

 private:
  Tensor argmax() const { return argmax_ ? *argmax_ : Tensor{}; }

  Options options_;
  TensorRef x_, y_, argmax_, dy_, dx_;
  GradientSum sum_;
};

/// [N,H,W,C] -> [N,C]
class GlobalAverage final : public Layer {
 public:
  struct Options {};
  explicit GlobalAverage(const Options&) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;

 private:
  TensorRef x_, y_, dy_, dx_;
  GradientSum sum_;
};

}  // namespace tw::layers
