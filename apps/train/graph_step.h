// GraphStep: the whole training step of one rank on a GPU as one CUDA graph. Data, augmentation,
// forward, backward and update are recorded once and launched for every step; the host reads the
// losses after several steps. Data that do not fit on the GPU come from a loader, a step ahead.
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
  /// True for dense SGD on one rank with a GPU, one micro-batch a step and no --analyze-every.
  static bool suits(const Context& ctx, const Communicator& comm, const TrainConfig& config);

  /// Records the step; leaves parameters and momentum unchanged. `momentum` is on the device, in
  /// the layout of the parameters, or empty. Batches come from `loader`, or, without one, from a
  /// copy of `data` on the GPU.
  GraphStep(Context& ctx, Model& model, const TrainConfig& config, const Dataset& data,
            std::span<float> momentum, Loader* loader = nullptr);

  /// Continues at batch `first` of `epoch`.
  void start_epoch(uint32_t epoch, int64_t first);
  /// The most steps of one run(); fewer with a loader, whose steps may be long.
  int64_t most() const { return prefetcher_ ? 8 : static_cast<int64_t>(StepInputs::kMost); }
  /// Runs steps `step`, step + 1, ... at the learning rates `lrs`; returns the sums of each.
  /// CollectiveFault when a gradient is not finite; that step makes no update.
  std::vector<ops::LossSums> run(uint64_t step, std::span<const float> lrs);

  /// Seconds spent waiting for data so far.
  double waited() const { return prefetcher_ ? prefetcher_->waited() : 0; }

  /// The recorded step.
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
