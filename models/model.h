// Model: a network, its parameters and the memory plan of one training step.
#pragma once

#include <optional>

#include "engine/ops/loss.h"
#include "layers/layer.h"
#include "models/registry.h"

namespace tw {

struct PlanConfig {
  int64_t batch = 128;
  DType activations = DType::f32;
  float label_smoothing = 0;
  bool recompute = false;  ///< discard activations inside residual blocks and recompute them
  std::vector<float> mean{0, 0, 0}, deviation{1, 1, 1};  ///< input normalisation, per channel
};

class Model {
 public:
  /// Declares the parameters and allocates nothing. Throws UserError on an unknown name or an
  /// impossible spec.
  Model(const std::string& name, const ModelSpec& spec);

  /// Plans one step and returns the memory it needs. Throws UserError on an impossible config.
  Planner::Memory plan(Context& ctx, const PlanConfig& config);
  /// Allocates the planned memory and initialises the parameters from `seed`, or sets them to 0
  /// without one, for weights that are read from a file. Throws OutOfMemory.
  void allocate(Context& ctx, std::optional<uint64_t> seed);

  /// Inputs, written by the caller: u8 [N,H,W,C] and i32 [N] (negative labels are padding).
  const Tensor& images() const { return *images_; }
  const Tensor& labels() const { return *labels_; }
  const Tensor& logits() const { return *logits_; }  ///< of the last forward
  const Tensor& sums() const { return *sums_; }      ///< LossSums on the device

  /// Updates the compute copies of the weights; call it after the parameters changed (update,
  /// load).
  void refresh(Context& ctx);
  /// Queues forward and loss; in training also dlogits, scaled by `grad_scale`. Adds the loss sums
  /// of the batch to sums().
  void queue_forward(const PassArgs& pass, float grad_scale = 1.0f);
  /// Returns and clears the loss sums added since the last call; waits for the device.
  ops::LossSums take_sums(Context& ctx) { return ops::take_sums(ctx, *sums_); }
  /// queue_forward() and take_sums(): returns the loss sums of this batch.
  ops::LossSums forward(const PassArgs& pass, float grad_scale = 1.0f) {
    queue_forward(pass, grad_scale);
    return take_sums(pass.ctx);
  }
  void backward(const PassArgs& pass);

  /// What the network computes in validation. Comes after plan().
  NetworkGraph graph() const;

  ParameterArena& arena() { return arena_; }
  const ParameterArena& arena() const { return arena_; }
  const Planner& planner() const { return *planner_; }
  const ModelSpec& spec() const { return spec_; }
  const std::string& name() const { return name_; }

 private:
  void check_logits() const;

  std::string name_;
  ModelSpec spec_;
  PlanConfig config_;
  ParameterArena arena_;
  LayerPtr net_;
  std::unique_ptr<Planner> planner_;
  TensorRef images_, labels_, input_, logits_, dlogits_, sums_;
};

}  // namespace tw
