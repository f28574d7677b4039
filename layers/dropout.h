// Dropout layer: its masks depend on (seed, step, stream) alone, so backward draws them again
// instead of keeping them.
#pragma once

#include "layers/gradient_sum.h"

namespace tw::layers {

class Dropout final : public Layer {
 public:
  struct Options {
    float rate = 0.5f;
    uint32_t stream = 0;  ///< a number of its own for every dropout layer of a network
  };
  explicit Dropout(const Options& options) : options_(options) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;

 private:
  void drop(const PassArgs& pass, const Tensor& from, const Tensor& to) const;

  Options options_;
  TensorRef x_, y_, dy_;
  GradientSum sum_;
};

}  // namespace tw::layers
