// Linear layer: `<name>.weight` [out, in] and `<name>.bias` [out]. Flattens what it gets.
#pragma once

#include <string>

#include "engine/ops/linear.h"
#include "layers/gradient_sum.h"

namespace tw::layers {

class Linear final : public Layer {
 public:
  struct Options {
    std::string name;
    Shape in;  ///< of one sample: (features) or (H, W, C)
    int64_t out;
    bool logits = false;  ///< y is fp32 whatever the activations are
  };

  Linear(ParameterArena& arena, const Options& options);

  TensorRef plan_forward(Planner& plan, TensorRef x) override;
  Gradient plan_backward(Planner& plan, Gradient dy) override;
  void refresh(Context& ctx) override;
  void forward(const PassArgs& pass) override;
  void backward(const PassArgs& pass) override;
  bool skip_input_gradient() override;

 private:
  Tensor flat(TensorRef x) const;

  ParameterArena& arena_;
  Options options_;
  const Parameter *weight_, *bias_;
  bool input_gradient_ = true;
  Planner::Product product_{};
  std::unique_ptr<ops::Linear> op_;
  TensorRef packed_, x_, y_, dy_, dx_;
  GradientSum sum_;
};

}  // namespace tw::layers
