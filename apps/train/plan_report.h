// The plan of a run, told before anything is spent: network, memory, bytes on the wire.
#pragma once

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "data/dataset.h"
#include "models/model.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// Returns the bytes of a rank's memory.
size_t report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                   const Model& model, const Planner::Memory& memory, const Sparsifier& algorithm,
                   int ranks);
/// Throws the fault of a rank that found no room for that.
[[noreturn]] void rethrow_with_plan(const Communicator& comm, size_t bytes,
                                    const OutOfMemory& error);

}  // namespace tw
