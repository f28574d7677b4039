// The parameter-free shortcut of CIFAR ResNets: option A of He et al., CVPR 2016, section 4.2.
#pragma once

#include "layers/gradient_sum.h"

namespace tw::layers {

class SubsamplePad final : public Layer {
 public:
  struct Options {
    int64_t out, stride;  ///< channels of y; every stride-th pixel is kept
  };
  explicit SubsamplePad(const Options& options) : options_(options) {}

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;

 private:
  Options options_;
  TensorRef x_, y_, dy_, dx_;
  GradientSum sum_;
};

}  // namespace tw::layers
