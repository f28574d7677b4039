// PassGraphs: forward and backward of a batch, each as one CUDA graph. For steps with a selection
// or an exchange, which the host queues; other steps are one graph as a whole (graph_step.h).
#pragma once

#include "apps/train/config.h"
#include "engine/device/graph.h"
#include "engine/ops/step_inputs.h"
#include "models/model.h"

namespace tw {

class PassGraphs {
 public:
  /// Records nothing yet. On the CPU, with --accumulate and with --overlap, passes are queued op by
  /// op, since the host acts within a pass.
  PassGraphs(Context& ctx, Model& model, const TrainConfig& config);

  /// As the model's queue_forward() and backward(), with the same bits. The first call of each
  /// queues op by op, since libraries load kernels then, which a recording does not allow; the
  /// second records.
  void queue_forward(const PassArgs& pass, float grad_scale);
  void backward(const PassArgs& pass);

  /// Graph launches so far.
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
