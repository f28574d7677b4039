// PassGraphs: forward and backward of a batch, on a GPU each as one graph. For steps in whose
// selection or exchange the host takes part; others are one graph as a whole (graph_step.h).
#pragma once

#include "apps/train/config.h"
#include "engine/device/graph.h"
#include "engine/ops/step_inputs.h"
#include "models/model.h"

namespace tw {

class PassGraphs {
 public:
  /// Nothing is recorded yet. Where the host looks into a pass (micro-batches, exchanges beside
  /// backward), and on the CPU, passes are always queued op by op.
  PassGraphs(Context& ctx, Model& model, const TrainConfig& config);

  /// As the model's queue_forward() and backward(), with the same bits. The first calls queue op by
  /// op: libraries load kernels when they are first called, which a recording does not allow. The
  /// second ones record.
  void queue_forward(const PassArgs& pass, float grad_scale);
  void backward(const PassArgs& pass);

  /// Launches of graphs so far.
  uint64_t launches() const;

 private:
  struct Recorded {
    bool rehearsed = false;
    std::unique_ptr<Graph> graph;
  };
  void queue(Recorded& recorded, const PassArgs& pass,
             const std::function<void(const PassArgs&)>& body);

  Model& model_;
  std::unique_ptr<StepInputs> replay_;  // null: op by op
  Recorded forward_, backward_;
};

}  // namespace tw
