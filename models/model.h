// Model: a network, its parameters, and the plan of one training step.
#pragma once

#include "engine/core/registry.h"
#include "engine/ops/loss.h"
#include "layers/layer.h"

namespace tw {

/// What a model factory builds for.
struct ModelSpec {
  Shape image{32, 32, 3};  ///< H, W, C of one input
  int64_t classes = 10;
  /// The last batch norm of each residual block starts at 0. (Goyal et al. 2017, section 5.1)
  bool zero_init = false;
  bool decay_all = false;  ///< weight decay on batch norm and biases, too
};

/// Builds the network whose output is [N, classes] fp32 logits.
using ModelFactory = std::function<LayerPtr(ParameterArena&, const ModelSpec&)>;
Registry<ModelFactory>& models();

struct PlanConfig {
  int64_t batch = 128;
  DType activations = DType::f32;
  float label_smoothing = 0;
  bool recompute = false;  ///< forget what lies inside residual blocks, compute it again
  std::vector<float> mean{0, 0, 0}, deviation{1, 1, 1};  ///< input normalisation, per channel
};

class Model {
 public:
  /// Parameters are declared, nothing is allocated; throws UserError on an unknown name.
  Model(const std::string& name, const ModelSpec& spec);

  /// Plans one step and returns the memory it would take.
  Planner::Memory plan(Context& ctx, const PlanConfig& config);
  /// Spends the memory of the plan and initialises the parameters from `seed`.
  void allocate(Context& ctx, uint64_t seed);

  /// Where the caller puts the batch: u8 [N,H,W,C] and i32 [N] (negative: padding).
  const Tensor& images() const { return *images_; }
  const Tensor& labels() const { return *labels_; }
  const Tensor& logits() const { return *logits_; }  ///< of the last forward
  const Tensor& sums() const { return *sums_; }      ///< a LossSums, not yet taken

  /// To be called after the parameters changed (update, load).
  void refresh(Context& ctx);
  /// Forward and loss; in training also prepares dlogits (scaled by `grad_scale`). The batch's sums
  /// add up on the device until they are taken.
  void queue_forward(const PassArgs& pass, float grad_scale = 1.0f);
  /// The sums of all forward passes since the last call; waits for the device.
  ops::LossSums take_sums(Context& ctx) { return ops::take_sums(ctx, *sums_); }
  /// Both: the sums of this batch.
  ops::LossSums forward(const PassArgs& pass, float grad_scale = 1.0f) {
    queue_forward(pass, grad_scale);
    return take_sums(pass.ctx);
  }
  void backward(const PassArgs& pass);

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
