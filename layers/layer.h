// Layer: forward and its explicit backward, over tensors planned once.
//
// Life of a layer: constructed with the arena (declares parameters) -> plan_forward, in forward
// order -> plan_backward, in backward order -> [refresh -> forward -> backward] every step.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/plan/arena.h"
#include "engine/plan/planner.h"

namespace tw {

/// What one walk through the network needs to know.
struct PassArgs {
  Context& ctx;
  bool training = true;     ///< batch statistics and dropout, or running statistics
  bool again = false;       ///< forward is repeated for backward: running statistics stay
  bool accumulate = false;  ///< gradients are added to (all micro-batches but the first)
  uint64_t seed = 0;        ///< dropout draws from (seed, step)
  uint64_t step = 0;
  /// Told when a parameter's gradient is final, in backward order; may be empty.
  std::function<void(const Parameter&)> on_gradient_ready{};

  void gradient_ready(const Parameter& p) const {
    if (on_gradient_ready) on_gradient_ready(p);
  }
};

/// A gradient, as one tensor or as the sum of two: where two branches meet again the sum is left
/// to whoever reads it next, who can often add in passing. Whoever receives a gradient owns its
/// tensors: it may overwrite them and hand them on.
struct Gradient {
  TensorRef main;
  TensorRef extra{};  ///< empty unless the gradient is a sum

  explicit operator bool() const { return static_cast<bool>(main); }
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// Declares y (returned) and what must be kept for backward.
  virtual TensorRef plan_forward(Planner& plan, TensorRef x) = 0;
  /// Declares dx (returned; empty when the input gradient was ruled out) for the gradient dy of y.
  virtual Gradient plan_backward(Planner& plan, Gradient dy) = 0;

  /// Rewrites compute copies (packed, bf16) after the parameters changed.
  virtual void refresh(Context&) {}
  /// Reads the planned x, writes the planned y.
  virtual void forward(const PassArgs& pass) = 0;
  /// Reads the planned dy, writes dx and parameter gradients.
  virtual void backward(const PassArgs& pass) = 0;

  /// Asked before planning when nothing in front of this layer learns: no dx is wanted. Returns
  /// whether the layer itself learns; if it does not, the next one need not compute its dx either.
  virtual bool skip_input_gradient() { return false; }
};

using LayerPtr = std::unique_ptr<Layer>;

}  // namespace tw
