// GraphStep: the whole training step of one rank on a GPU as one graph. Data, augmentation,
// forward, backward and update are recorded once and launched again and again; the host looks at
// losses now and then.
#pragma once

#include "apps/support/config.h"
#include "comm/communicator.h"
#include "data/resident.h"
#include "engine/graph.h"
#include "engine/ops/sgd.h"
#include "engine/replay.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

class GraphStep {
 public:
  /// One rank, dense SGD, a GPU, and data that lie in memory and fit into the GPU's.
  static bool suits(const Context& ctx, const Communicator& comm, const TrainConfig& config,
                    const Dataset& data);

  /// Records the step; parameters and momentum are afterwards what they were. `momentum` lies on
  /// the device, by the model's parameters; empty without.
  GraphStep(Context& ctx, Model& model, const TrainConfig& config, const Dataset& data,
            std::span<float> momentum);

  /// Goes to batch `first` of `epoch`.
  void start_epoch(uint32_t epoch, int64_t first);
  /// Takes steps `step`, step + 1, ... at these rates, at most Replay::kMost; returns their sums.
  /// Throws SharedFault when a gradient is not finite: the step's update was then not made.
  std::vector<ops::LossSums> run(uint64_t step, std::span<const float> lrs);

  /// Kernels and copies of a step.
  size_t size() const { return graph_->size(); }

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
  std::unique_ptr<ResidentData> data_;
  std::unique_ptr<Replay> replay_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tw
