// Sweeps: a configuration with lists of values for some options becomes a run for each combination.
#pragma once

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "comm/communicator.h"

namespace tw {

/// The runs of a command line: one, or with "sweep" in the configuration one for each combination
/// of values, in order; the last key varies fastest. Each continues its own run folder. UserError
/// names the combination that is impossible. `run`: the options of the run that --resume names.
std::vector<TrainConfig> parse_train_configs(const OptionTable::Given& given,
                                             const RunOptions& run);

enum class CellState { absent, interrupted, finished };

/// What the run folders of a combination, one for each seed, say of it. UserError when it has run
/// with other options.
CellState state_of(const TrainConfig& cell);

/// Prints the combinations with their states and returns the states, the same on every rank.
std::vector<CellState> report_sweep(Communicator& world, Console& console,
                                    const std::vector<TrainConfig>& cells);

/// note_folder() of each run of a combination; for rank 0.
void note_folders(const TrainConfig& cell);

/// Prints a line for each run of a sweep that has ended, from its summary. For rank 0.
void report_results(Console& console, const std::vector<TrainConfig>& cells);

}  // namespace tw
