// Sequential: a chain of layers.
#pragma once

#include "layers/layer.h"

namespace tw::layers {

class Sequential final : public Layer {
 public:
  void add(LayerPtr layer) { layers_.push_back(std::move(layer)); }
  /// Constructs and appends a layer with parameters: `net->add<Conv2d>(arena, {.name = "conv1",
  /// ...})`.
  template <class Kind>
  void add(ParameterArena& arena, const typename Kind::Options& options) {
    add(std::make_unique<Kind>(arena, options));
  }
  /// Constructs and appends a layer without parameters: `net->add<Relu>()`.
  template <class Kind>
  void add(const typename Kind::Options& options = {}) {
    add(std::make_unique<Kind>(options));
  }

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx, ops::Transfers& later) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;
  bool has_parameters() const override;
  void skip_input_gradient() override;

 private:
  std::vector<LayerPtr> layers_;
  size_t first_ = 0;  // first layer with parameters; backward skips earlier layers
};

}  // namespace tw::layers
