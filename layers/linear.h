// Linear layer: `<name>.weight` [out, in] and `<name>.bias` [out]. Flattens its input.
#pragma once

#include <optional>
#include <string>

#include "engine/ops/linear.h"
#include "layers/unary_layer.h"

namespace tw::layers {

class Linear final : public UnaryLayer {
 public:
  struct Options {
    std::string name;
    Shape in;  ///< of one sample: (features) or (H, W, C)
    int64_t out;
    bool logits = false;               ///< y is always fp32
    std::optional<float> deviation{};  ///< of the initial weights; default: that of He et al.
  };

  Linear(ParameterArena& arena, const Options& options);

  void refresh(Context& ctx, ops::Transfers& later) override;
  void forward(const PassArgs& pass) override;
  size_t describe(NetworkGraph& graph, size_t x) const override;
  bool has_parameters() const override { return true; }
  void skip_input_gradient() override;

 private:
  TensorRef plan_y(Planner& plan) override;
  TensorRef plan_dx(Planner& plan) override;
  void run_backward(const PassArgs& pass) override;

  Tensor flat(TensorRef x) const;

  ParameterArena& arena_;
  Options options_;
  const Parameter *weight_, *bias_;
  bool input_gradient_ = true;
  Planner::Product product_{};
  std::unique_ptr<ops::Linear> op_;
  TensorRef packed_, staged_;
};

}  // namespace tw::layers
