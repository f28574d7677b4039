// Layer: forward and an explicit backward over tensors that are planned once.
//
// Order of calls: the constructor declares parameters in the arena; plan_forward, in forward order;
// plan_backward, in backward order; then refresh, forward, backward in every step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/ops/step_inputs.h"
#include "engine/plan/arena.h"
#include "engine/plan/planner.h"
#include "layers/network_graph.h"

namespace tw {

/// Arguments of one forward and backward pass.
struct PassArgs {
  Context& ctx;
  bool training = true;  ///< batch statistics and dropout; else running statistics
  /// Of the running statistics, instead of the batch norms' own; 0 keeps them.
  std::optional<float> momentum{};
  bool accumulate = false;  ///< add to the gradients (all micro-batches but the first)
  uint64_t seed = 0;        ///< dropout draws from (seed, step)
  uint64_t step = 0;
  const RecordedStep* recorded = nullptr;  ///< of a recorded pass: has its step, in place of `step`
  /// Receives the transfers that write weight gradients, which the caller runs after backward;
  /// null: backward runs them.
  ops::Transfers* deliveries = nullptr;
  /// Called when the gradient of a parameter is final, in backward order; may be empty.
  std::function<void(const Parameter&)> on_gradient_ready{};

  void gradient_ready(const Parameter& p) const {
    if (on_gradient_ready) on_gradient_ready(p);
  }
};

/// A gradient: one tensor, or the sum of two if two branches read the activation. The next layer in
/// backward order adds the two, often as part of its own kernel. It owns the tensors it receives:
/// it may overwrite them or return them as its dx.
struct Gradient {
  TensorRef main;
  TensorRef extra{};  ///< empty unless the gradient is a sum

  explicit operator bool() const { return static_cast<bool>(main); }
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// Declares and returns y; declares what must be kept for backward.
  virtual TensorRef plan_forward(Planner& plan, TensorRef x) = 0;
  /// Declares and returns dx for the gradient dy of y; empty after skip_input_gradient().
  virtual Gradient plan_backward(Planner& plan, Gradient dy) = 0;

  /// Updates compute copies of the weights (packed, bf16) after the parameters changed, or adds the
  /// transfers that do to `later`.
  virtual void refresh(Context&, ops::Transfers& /*later*/) {}
  /// Reads the planned x, writes the planned y.
  virtual void forward(const PassArgs& pass) = 0;
  /// Reads the planned dy, writes dx and parameter gradients.
  virtual void backward(const PassArgs& pass) = 0;

  /// Appends what the layer computes in validation from value x; returns the value of y. Comes
  /// after plan_forward.
  virtual size_t describe(NetworkGraph& graph, size_t x) const = 0;

  virtual bool has_parameters() const { return false; }
  /// Called before planning of a layer with parameters if none before it has any: nothing reads dx.
  virtual void skip_input_gradient() {}
};

using LayerPtr = std::unique_ptr<Layer>;

}  // namespace tw
