// Conv2d layer: `<name>.weight` [O,K,K,I] and, optionally, `<name>.bias` [O].
#pragma once

#include <string>

#include "engine/ops/conv2d.h"
#include "layers/gradient_sum.h"

namespace tw::layers {

class Conv2d final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t in, out;  ///< channels
    int64_t kernel = 3, stride = 1, padding = 1;
    bool bias = false;
  };

  Conv2d(ParameterArena& arena, const Options& options);

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;
  bool skip_input_gradient() override;

 private:
  ParameterArena& arena_;
  Options options_;
  const Parameter* weight_;
  const Parameter* bias_ = nullptr;  // null without
  bool input_gradient_ = true;
  Planner::Product product_{};
  std::unique_ptr<ops::Conv2d> op_;
  TensorRef packed_, x_, y_, dy_, dx_;
  GradientSum sum_;
};

}  // namespace tw::layers
