// Layers without parameters that act on each element by itself; their dx replaces dy.
#pragma once

#include "layers/unary_layer.h"

namespace tw::layers {

/// ReLU, for networks without batch norm; BatchNorm fuses its own.
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

/// Masks depend on (seed, step, stream) alone; backward draws them again instead of keeping them.
class Dropout final : public UnaryLayer {
 public:
  struct Options {
    float rate = 0.5f;
    uint32_t stream = 0;  ///< distinct for every dropout layer of a network
  };
  explicit Dropout(const Options& options) : options_(options) {}

  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;

  void drop(const PassArgs& pass, const Tensor& from, const Tensor& to) const;

  Options options_;
};

}  // namespace tw::layers
