// The training run of one rank.
#pragma once

#include <atomic>

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "apps/train/summary.h"
#include "comm/communicator.h"
#include "data/dataset.h"

namespace tw {

/// Trains, validates (--eval-only) or prints the plan (--dry-run). Collective. Each step begins by
/// reading `stop`. When it is true on any rank, all ranks finish that step, write a checkpoint and
/// return. UserError on options, data or files that do not fit; Fault when memory or disk run out.
RunResult train(Communicator& comm, const TrainConfig& config, const DataSplit& data,
                const std::atomic<bool>& stop, Console& console);

}  // namespace tw
