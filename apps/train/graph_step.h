// GraphStep: the whole training step of one rank on a GPU as one graph. Data, augmentation,
// forward, backward and update are recorded once and launched again and again; the host looks at
// losses now and then. Data that do not fit on the GPU come from a loader, a step ahead.
#pragma once

#include "apps/train/config.h"
#include "comm/communicator.h"
#include "data/device_prefetcher.h"
#include "data/resident.h"
#include "engine/device/graph.h"
#include "engine/ops/sgd.h"
#include "engine/ops/step_inputs.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

class GraphStep {
 public:
  /// One rank, dense SGD, one batch a step, no look at gradients, and a GPU.
  static bool suits(const Context& ctx, const Communicator& comm, const TrainConfig& config);

  /// Records the step; parameters and momentum are afterwards what they were. `momentum` lies on
  /// the device, by the model's parameters; empty without. Batches come from `loader`; without one
  /// the data lie on the GPU.
  GraphStep(Context& ctx, Model& model, const TrainConfig& config, const Dataset& data,
            std::span<float> momentum, Loader* loader = nullptr);

  /// Goes to batch `first` of `epoch`.
  void start_epoch(uint32_t epoch, int64_t first);
  /// The most steps of a run(). Where a loader sets the pace they may be long.
  int64_t most() const { return prefetcher_ ? 8 : static_cast<int64_t>(StepInputs::kMost); }
  /// Takes steps `step`, step + 1, ... at these rates; returns their sums.
  /// Throws CollectiveFault when a gradient is not finite: the step's update was then not made.
  std::vector<ops::LossSums> run(uint64_t step, std::span<const float> lrs);

  /// Seconds spent in waiting for data so far.
  double waited() const { return prefetcher_ ? prefetcher_->waited() : 0; }

  /// The step as it is launched.
  const Graph& graph() const { return *graph_; }

 private:
  void queue_step();
  void rehearse();

  Context& ctx_;
  Model& model_;
  const Dataset& dataset_;
  uint64_t seed_;
  int64_t batch_;
  ops::SgdParams params_;
  std::vector<uint32_t> decay_bounds_;
  std::span<float> momentum_;
  std::unique_ptr<ResidentData> data_;  // or
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::unique_ptr<StepInputs> replay_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tw
