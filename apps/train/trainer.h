// One training run, as one rank sees it.
#pragma once

#include <atomic>
#include <string>

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "apps/train/summary.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "models/model.h"

namespace tw {

/// Trains (or, with dry_run, prints the plan). Collective. `stop` turning true ends the run after
/// the step in which any rank saw it.
RunResult train(Communicator& comm, const TrainConfig& config, const DataSplit& data,
                const std::atomic<bool>& stop, Console& console);

/// `cpu` or `cuda`, and `f32` or `bf16`: what auto stands for on this machine.
Device resolved_device(const TrainConfig& config);
DType resolved_precision(const TrainConfig& config);
int64_t resolved_classes(const TrainConfig& config, const DataSplit& data);
PlanConfig resolved_plan(const TrainConfig& config, const DataSplit& data);
/// CPU threads of each of the `ranks` on this machine.
int resolved_threads(const TrainConfig& config, int ranks);

}  // namespace tw
