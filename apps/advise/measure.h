// Measures the costs of an iteration: compute, selection, update, additions, messages.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/advise/config.h"
#include "apps/advise/costs.h"
#include "comm/link/link.h"

namespace tw {

class CostMeter {
 public:
  /// Plans and allocates `model`. Collective.
  CostMeter(Context& ctx, Communicator& comm, Model& model, const AdviseConfig& config);

  /// Forward and backward on generated images; an optimizer step of every registered sparsifier on
  /// one rank (`hierarchical`: in one node); additions; messages between neighbours. All ranks
  /// compute at the same time, as in training. Compute and whole step: seconds of the slowest rank.
  /// Exchange: those of the fastest rank, which waits least for the others (`hierarchical`: the
  /// fastest rank of the slowest node). The link of one rank is zero, and so is one whose costs are
  /// those of its file. `show` is told what is measured next. Collective.
  Costs round(const std::function<void(const std::string&)>& show);

 private:
  ComputeProfile time_compute();
  StepCosts time_step(const std::string& sparsifier, bool in_nodes);

  Context& ctx_;
  Communicator& comm_;
  Model& model_;
  const AdviseConfig& config_;
  std::optional<LinkCommunicator> link_, nodes_;  // the emulated link, if there is one
  std::vector<float> gradient_;                   // of the last backward
  uint64_t step_ = 0;
};

}  // namespace tw
