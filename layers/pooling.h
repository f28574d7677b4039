// Layers without parameters that change the size of images.
#pragma once

#include "engine/ops/pool.h"
#include "layers/unary_layer.h"

namespace tw::layers {

/// Maximum or average over windows.
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

/// The mean of each channel over the image: [N,H,W,C] -> [N,C], in the dtype of the activations.
class GlobalAverage final : public UnaryLayer {
 public:
  struct Options {};
  explicit GlobalAverage(const Options&) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;
};

/// The parameter-free shortcut of CIFAR ResNets: option A of He et al., CVPR 2016.
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
  void run_backward(const PassArgs& pass) override;

  Options options_;
};

}  // namespace tw::layers
