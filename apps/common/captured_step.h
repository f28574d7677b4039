// Training steps on a GPU, recorded as CUDA graphs and launched again for every step.
//
// CapturedStep: the whole step of one rank is one graph; the host reads losses only after several
// steps. CapturedPasses: forward and backward are one graph each, for steps in which the host
// queues selection and exchange. Both give the same bits as the ops queued one by one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/device_prefetcher.h"
#include "data/resident.h"
#include "engine/device/graph.h"
#include "engine/ops/sgd.h"
#include "engine/ops/step_inputs.h"
#include "models/model.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// The refusal of a device to record a graph. Once it has refused one, no other is tried.
struct Refusal {
  bool happened = false;
  std::string notice;  ///< for the user

  std::string take_notice() { return std::exchange(notice, {}); }
};

/// Work on a GPU that repeats. The first call queues it op by op, because libraries load kernels at
/// their first call, which a recording does not allow. The second call records a graph; this and
/// all later calls launch it or, if the device refuses to record it, queue the work op by op.
class Captured {
 public:
  explicit Captured(Refusal& refusal) : refusal_(refusal) {}

  /// Queues the work of `body`, which queues the same work at every call. From the second call on
  /// it may neither allocate nor wait.
  void operator()(Context& ctx, const std::function<void()>& body);
  /// The recorded work; null before the second call and after a refusal.
  const Graph* graph() const { return graph_.get(); }
  uint64_t launches() const { return graph_ ? graph_->launches() : 0; }

 private:
  Refusal& refusal_;
  bool has_run_ = false;
  std::unique_ptr<Graph> graph_;
};

/// Dense SGD on one rank with a GPU, one micro-batch a step: data, augmentation, forward, backward
/// and update.
class CapturedStep {
 public:
  /// Reads momentum, nesterov, weight_decay and seed of `sgd`. `momentum` is on the device, in the
  /// layout of the parameters, or empty. Batches come from `loader`, one step ahead, or, without a
  /// loader, from a copy of `data` on the GPU. All but `sgd` must outlive this object.
  CapturedStep(Context& ctx, Model& model, const Dataset& data, const SgdConfig& sgd,
               std::span<float> momentum, Loader* loader = nullptr);

  /// Continues at batch `first` of `epoch`.
  void start_epoch(uint32_t epoch, int64_t first);
  /// The most steps of one run(); fewer with a loader, whose steps may be long.
  int64_t max_steps() const { return prefetcher_ ? 8 : static_cast<int64_t>(StepInputs::kMost); }
  /// Runs steps `step`, step + 1, ... at the learning rates `lrs`; returns the loss sums of each.
  /// CollectiveFault when a gradient is not finite; updates stop at that step.
  std::vector<ops::LossSums> run(uint64_t step, std::span<const float> lrs);

  /// Seconds spent waiting for data so far.
  double waited() const { return prefetcher_ ? prefetcher_->waited() : 0; }
  /// The recorded step; null before the second step and after a refusal.
  const Graph* graph() const { return captured_.graph(); }
  /// Graph launches so far.
  uint64_t launches() const { return captured_.launches(); }
  /// Once after the device refused to record the step, the reason; else empty.
  std::string take_notice() { return refusal_.take_notice(); }

 private:
  void queue_step();

  Context& ctx_;
  Model& model_;
  const Dataset& dataset_;
  uint64_t seed_;
  ops::SgdParams params_;
  std::vector<uint32_t> decay_bounds_;
  std::span<float> momentum_;
  std::unique_ptr<ResidentData> data_;  // one of these two, the other is null
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::unique_ptr<StepInputs> step_inputs_;
  Refusal refusal_;
  Captured captured_{refusal_};
};

/// Forward and backward of a model.
class CapturedPasses {
 public:
  /// Without `capture` and on the CPU, passes are queued op by op. `capture` requires that the host
  /// does nothing within a pass: no exchange during backward, no accumulation of gradients.
  CapturedPasses(Context& ctx, Model& model, bool capture);

  /// As the model's queue_forward() and backward(). A captured pass needs the same seed in all
  /// calls and ignores `accumulate` and `on_gradient_ready`.
  void queue_forward(const PassArgs& pass, float grad_scale);
  void backward(const PassArgs& pass);

  /// Graph launches so far.
  uint64_t launches() const { return forward_.launches() + backward_.launches(); }
  /// Once after the device refused to record a pass, the reason; else empty.
  std::string take_notice() { return refusal_.take_notice(); }

 private:
  void queue(Captured& captured, const PassArgs& pass,
             const std::function<void(const PassArgs&)>& body);

  Model& model_;
  std::unique_ptr<StepInputs> step_inputs_;  // null: op by op
  Refusal refusal_;
  Captured forward_{refusal_}, backward_{refusal_};
};

}  // namespace tw
