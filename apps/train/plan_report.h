// The plan of a run, printed before memory is allocated: network, memory, bytes per step.
#pragma once

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "data/dataset.h"
#include "models/model.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// Outputs of the network: --classes, or the number of classes of the data. UserError if the data
/// has more.
int64_t class_count(const TrainConfig& config, const DataSplit& data);

/// Arguments of Model::plan() for this run: micro-batch, precision, input normalisation, ...
PlanConfig plan_config(const TrainConfig& config, const DataSplit& data);

/// Prints the plan of a run that trains in `epochs` epochs (fewer than config.epochs if --max-steps
/// ends it before); returns the bytes of memory of one rank.
size_t report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                   const Model& model, const Planner::Memory& memory, const Sparsifier& sparsifier,
                   int ranks, int64_t epochs);
/// One line for each option or setting that changes nothing with this data, network, device or
/// number of ranks. UserError where a flag cannot have been meant: one for other data, and a
/// setting that no part reads.
std::vector<std::string> unused_options(Context& ctx, const TrainConfig& config,
                                        const DataSplit& data, const Model& model, int ranks);
/// Prints the steps of an epoch of `batches` steps and of the run, and what all ranks send in it.
void report_length(Console& console, const TrainConfig& config, const Model& model, int ranks,
                   int64_t batches);
/// With local steps: prints the exchanges and bytes of an epoch of `batches` steps.
void report_local_steps(Console& console, const TrainConfig& config, const Model& model, int ranks,
                        int64_t batches);
/// Throws OutOfMemory with the `reason`, what the memory was for, and the `bytes` that were planned
/// for each rank; 0: the plan is not made yet.
[[noreturn]] void rethrow_with_plan(const Communicator& comm, const char* purpose, size_t bytes,
                                    const char* reason);

}  // namespace tw
