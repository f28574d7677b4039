// The parameter-free shortcut of CIFAR ResNets: option A of He et al., CVPR 2016.
#pragma once

#include "layers/unary_layer.h"

namespace tw::layers {

class SubsamplePad final : public UnaryLayer {
 public:
  struct Options {
    int64_t out, stride;  ///< channels of y; stride between kept pixels
  };
  explicit SubsamplePad(const Options& options) : options_(options) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;

  Options options_;
};

}  // namespace tw::layers
