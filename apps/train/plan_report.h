// The plan of a run, known before its memory is allocated: memory, steps, entries, bytes; as text
// and as JSON. Options without effect.
#pragma once

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "apps/train/tables/position.h"
#include "data/dataset.h"
#include "models/model.h"
#include "sparsify/sgd_plan.h"

namespace tw {

/// Outputs of the network: --classes, or the number of classes of the data. UserError if the data
/// has more.
int64_t class_count(const TrainConfig& config, const DataSplit& data);

/// Arguments of Model::plan() for this run: micro-batch, precision, input normalisation, ...
PlanConfig plan_config(const TrainConfig& config, const DataSplit& data);

struct RunPlan {
  /// The exchanges of one or more epochs of the same density.
  struct Stage {
    double density = 1;
    size_t entries = 0;       ///< that a rank sends, or sums, in an exchange
    uint64_t bytes_sent = 0;  ///< by all ranks in an exchange
    double seconds = 0;       ///< of an exchange on the emulated link, by the cost model; or NaN
  };

  int ranks = 1;
  Planner::Memory memory{};
  size_t parameter_bytes = 0;  ///< with the gradients
  SgdPlan sgd;
  /// One for each epoch of the density warm-up, then one for all epochs that follow; this one alone
  /// if all tensors have a density of their own.
  std::vector<Stage> stages{};
  uint64_t dense_bytes_sent = 0;  ///< by dense SGD in an exchange; 0 without a selector or start
  int64_t dense_exchanges = 0;  ///< the start: first exchanges of the run, which sum whole vectors

  int64_t epochs = 0;           ///< that the run begins, fewer than --epochs if --max-steps ends it
  int64_t steps_per_epoch = 0;  ///< 0: it only validates
  int64_t steps = 0;
  int64_t steps_done = 0;  ///< before it was resumed, maybe on other ranks
  int64_t steps_per_exchange = 1;
  double bytes_sent = 0;  ///< in the steps that are left

  size_t memory_bytes() const { return memory.total() + parameter_bytes + sgd.optimizer_bytes; }
  int64_t exchanges_per_epoch() const { return exchanges(steps_per_epoch); }
  /// Those of consecutive steps of an epoch.
  int64_t exchanges(int64_t in_steps) const {
    return (in_steps + steps_per_exchange - 1) / steps_per_exchange;
  }
};

/// The plan on one of `ranks` ranks. `steps_per_epoch`: 0 for a run that only validates. `at`:
/// where the run begins.
RunPlan plan_run(const TrainConfig& config, const Model& model, const Planner::Memory& memory,
                 int ranks, int64_t steps_per_epoch, const Position& at);

/// The plan as train --dry-run --json prints it; configs/schema/plan.json describes it.
Json to_json(const RunPlan& plan, const TrainConfig& config, const DataSplit& data,
             const Model& model);

/// Prints the plan of a run.
void report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                 const Model& model, const RunPlan& plan);
/// One line for each option or setting that changes nothing with this data, network, device or
/// number of ranks. UserError where a flag cannot have been meant: one for other data, and a
/// setting that no part reads.
std::vector<std::string> unused_options(Context& ctx, const TrainConfig& config,
                                        const DataSplit& data, const Model& model, int ranks);
/// Throws OutOfMemory with the `reason`, what the memory was for, and the `bytes` that were planned
/// for each rank; 0: the plan is not made yet.
[[noreturn]] void rethrow_with_plan(const Communicator& comm, const char* purpose, size_t bytes,
                                    const char* reason);

}  // namespace tw
