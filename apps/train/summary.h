// Reports of a run: config.json, summary.json, and the lines on the console.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <string>

#include "apps/common/console.h"
#include "apps/train/config.h"
#include "apps/train/run_folder.h"
#include "apps/train/tables/records.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "engine/plan/arena.h"

namespace tw {

struct Position;

/// Result of a run, the same on every rank.
struct RunResult {
  double val_top1 = 0, val_top5 = 0, val_loss = 0;  ///< NaN (null in JSON) without validation
  bool stopped = false;                             ///< by a signal, after a checkpoint
  /// Of --test-dir; NaN without it.
  double test_top1 = std::numeric_limits<double>::quiet_NaN(), test_top5 = test_top1;
};

/// CollectiveFault, which says `when`, unless the validation loss is finite.
void check_finite(const ops::LossSums& val, const std::string& when);
RunResult result_of(const ops::LossSums& val, bool stopped = false);

struct RunSummary {
  RunResult result;
  int64_t classes = 0;
  std::string val_name{};                   ///< the images used for validation
  std::string test_name{}, test_weights{};  ///< of --test-dir; empty without it
  double seconds = 0;                       ///< of this process, with validation and checkpoints
  uint64_t weights_hash = 0;
  bool resumed = false;  ///< whether an earlier process trained a part of the run
};

/// The line on the images of --test-dir.
std::string test_text(const RunSummary& summary);
/// part / whole; 0 when `whole` is 0.
double share(int64_t part, int64_t whole);

/// UserError when parameters differ between ranks in name, shape or order. Collective.
void check_same_layout(Communicator& comm, const ParameterArena& arena);
/// Hash of parameters and statistics; Fault when it differs between ranks. Collective.
uint64_t common_weights_hash(Communicator& comm, const ParameterArena& arena);

/// The damaged images that a run skipped.
class SkippedImages {
 public:
  /// Prints one line for each class of which images were skipped for the first time since the last
  /// call, on any rank, and the number of all. Collective.
  void report(Communicator& comm, const DataSplit& data, Console& console);

 private:
  std::set<std::string> lines_;  // class/description
};

/// {"mean": [...], "deviation": [...]}: a network sees (pixel / 255 - mean) / deviation by channel.
Json normalisation_of(const TrainConfig& config);
/// How a resume at `step` changed the run.
struct Change {
  int64_t step = 0;
  std::string text;  ///< empty: not at all
};
/// config.json: the resolved configuration, versions, ranks, transport, and the changes by resumes:
/// those that the file has up to this one's step, and this one.
void write_config(const RunFolder& folder, TrainConfig& config, const Communicator& comm,
                  int64_t steps_per_epoch, const Change& change);
/// Prints one line for an epoch; `val.count` is 0 without validation.
void report_epoch(Console& console, int64_t epoch, int64_t epochs, const StepRecord& totals,
                  const ops::LossSums& val);
/// Prints the share of an epoch spent waiting for data; prints nothing below 5 % or a second.
/// `decodes`: the data are image files.
void report_waiting(Console& console, const StepRecord& totals, bool decodes);
/// Prints how many cores other programs took from the threads of the run during an epoch, from half
/// a core on. Returns whether it did.
bool report_load(Console& console, double cores_taken, int threads_per_rank);
/// Prints the columns of metrics.csv that fit on a screen.
void print_table(Console& console, const std::filesystem::path& metrics);
/// The result in the text of a summary.json, if it is that of a run that ended at `step`, was not
/// stopped by a signal and measured the images `test_name` (empty: any, or none).
std::optional<RunResult> finished_result(const std::string& summary, int64_t step,
                                         const std::string& test_name);
/// How to go on with a run that has ended early: `mpirun -n 2 PROGRAM --resume X`.
std::string continuing_command(const RunFolder& folder, const TrainConfig& config, int ranks);
/// Writes summary.json; prints the table of metrics.csv and the result.
void write_summary(Console& console, const RunFolder& folder, const TrainConfig& config,
                   const Position& position, const RunSummary& summary, int ranks);

}  // namespace tw
