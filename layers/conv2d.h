// Conv2d layer: `<name>.weight` [O,K,K,I] and, optionally, `<name>.bias` [O].
#pragma once

#include <string>

#include "engine/ops/conv2d.h"
#include "layers/unary_layer.h"

namespace tw::layers {

class Conv2d final : public UnaryLayer {
 public:
  struct Options {
    std::string name;
    int64_t in, out;  ///< channels
    int64_t kernel = 3, stride = 1, padding = 1;
    bool bias = false;
  };

  Conv2d(ParameterArena& arena, const Options& options);

  void refresh(Context& ctx, ops::Transfers& later) override;
  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;
  bool has_parameters() const override { return true; }
  void skip_input_gradient() override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;

  ParameterArena& arena_;
  Options options_;
  const Parameter* weight_;
  const Parameter* bias_ = nullptr;  // null: no bias
  bool input_gradient_ = true;
  Planner::Product product_{};
  std::unique_ptr<ops::Conv2d> op_;
  TensorRef packed_, staged_, beside_;
};

}  // namespace tw::layers
