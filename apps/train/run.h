// Run: a training run on one rank. run_setup.cpp prepares it, step.cpp has a training step,
// trainer.cpp the epochs.
#pragma once

#include <algorithm>

#include "apps/common/captured_step.h"
#include "apps/common/console.h"
#include "apps/common/machine_load.h"
#include "apps/train/checkpoint.h"
#include "apps/train/progress.h"
#include "apps/train/run_folder.h"
#include "apps/train/schedule.h"
#include "apps/train/summary.h"
#include "apps/train/tables/gradient_statistics.h"
#include "apps/train/tables/records.h"
#include "data/loader.h"
#include "engine/core/stopwatch.h"
#include "engine/io/csv.h"
#include "engine/io/event_file.h"

namespace tw {

/// Used once, by run(). Every method that is not const is collective.
class Run {
 public:
  /// Declares the model without allocating its memory.
  Run(Communicator& comm, const TrainConfig& config, const DataSplit& data,
      const std::atomic<bool>& stop, Console& console);

  /// Trains, validates or prints the plan, by the configuration. When memory runs out, throws Fault
  /// with the planned size.
  RunResult run();

  /// The ranks of a run; a dry run plans for all of them on one.
  static int ranks_of(const TrainConfig& config, const Communicator& comm) {
    const bool one_for_all = config.dry_run && config.workers > 1;
    return one_for_all ? static_cast<int>(config.workers) : comm.size();
  }

 private:
  // run_setup.cpp, in this order
  /// Makes the loaders. UserError when a batch is larger than the data.
  void load();
  /// Applies --freeze; UserError when a pattern matches nothing.
  void freeze();
  /// UserError when --pretrained does not fit; names --reset-head when only the classes differ.
  /// Returns the checksum of the file.
  uint64_t check_pretrained() const;
  /// Plans and prints the memory of a step, and opens the run folder on rank 0.
  void plan();
  /// Allocates model and optimizer; restores their state from the checkpoint or the weights given.
  void restore();
  /// The second part of it. UserError, which names an older checkpoint if only this one is damaged.
  void read_weights();
  /// Gives a branch its first checkpoint, that of the run which it continues, so that a kill before
  /// the next one loses nothing, and the best one.
  void adopt_checkpoint();
  /// Prepares the source of batches and opens the tables of the run folder on rank 0.
  void open_tables();
  /// Whether a step needs no work of the host: dense SGD on one rank with a GPU.
  bool can_capture_step() const;

  // step.cpp
  /// One step queued by the host; its parts follow in order. docs/architecture.md describes it.
  StepRecord train_step();
  void begin_step();
  PassArgs pass_of(int64_t micro_batch);
  void forward(const PassArgs& pass);
  void backward(const PassArgs& pass);
  /// Writes the gradient of this step, and what was selected from, to the run folder.
  void save_gradients(std::span<float> g, std::span<float> u);
  /// Exchanges the gradients, updates the parameters and refreshes the copies that kernels read.
  void update();
  /// Adds the seconds since the last call to a phase of the step.
  void lap(double PhaseSeconds::*phase);
  /// Several steps, each one launch of the captured step.
  void train_captured_steps();
  /// Steps to launch before the host must act: end of epoch, checkpoint, --max-steps.
  int64_t steps_ahead() const;

  // trainer.cpp
  RunResult run_to_the_end();
  void train_epoch();
  /// Adds a step, merged over the ranks, to the totals and to steps.csv. StepLog merges up to
  /// twenty steps at a time, so at_.step may be later than step.step.
  void add_step(const StepRecord& step);
  /// Adds a step of this rank to the progress line and to the buffer of add_step().
  void log_step(const StepRecord& step);
  Place place() const;
  void show_progress(const Place& at);
  /// Validates and reports an epoch. An epoch that --max-steps ends early (not `whole`) is reported
  /// as well; a resumed run continues it and reports it again.
  void close_epoch(bool whole);
  void validate();
  /// With --bn-stats recompute: computes the statistics of this step, unless it has done so.
  void renew_statistics();
  /// Whether a signal asks any rank to stop.
  bool stops_on_any_rank();
  /// Flushes the rows so far to the disk: a run resumed from a checkpoint keeps those before it.
  void sync_tables();
  /// Writes a checkpoint, after the rows of the tables so far, and those that --keep-best keeps.
  void checkpoint();
  /// Asks the clock of rank 0 whether a checkpoint is due by --checkpoint-minutes, after half of
  /// the steps that are likely to be left; false before.
  bool ask_for_checkpoint();
  /// Notes in the checkpoint written before the validation that it is done.
  void complete_checkpoint();
  /// On rank 0: keeps the best checkpoint, and removes the one before it.
  void keep_best();
  /// The result of a run that was finished before, of which nothing is left to train.
  std::optional<RunResult> result_before();
  RunResult evaluate_only();
  /// Measures --test-dir, if it is given, with the weights of the model or, with --keep-best and
  /// `best`, those of the best checkpoint, which the model then has.
  void test(RunSummary& summary, bool best);
  RunResult finish(bool stopped);

  Planner::Memory plan_model();
  /// The checkpoint with which the run begins, and what changed since; empty for a new run.
  struct Start {
    std::string text;
    Position at;
  };
  /// On rank 0. UserError where the run cannot continue the checkpoint.
  Start starting_point() const;
  /// Sets the gradient of a frozen parameter to 0.
  void clear_if_frozen(const Parameter& parameter);
  /// The learning rate of a batch of this epoch.
  double rate(int64_t batch) const {
    return learning_rate_factor(config_, comm_.size()) *
           learning_rate(config_, at_.epoch, batch, train_loader_->batches());
  }
  int ranks() const { return ranks_of(config_, comm_); }
  /// Whether the ranks are processes, which may run on machines with other disks.
  bool has_processes() const { return comm_.size() > std::max<int64_t>(1, config_.workers); }
  /// Density of the gradient in this epoch; 1 without a selector.
  double density() const { return optimizer_->selects() ? density_of(config_, at_.epoch) : 1; }
  /// Whether the next step is the last of its epoch or of the run.
  bool last_step() const {
    return at_.batch + 1 == train_loader_->batches() || at_.step + 1 == config_.max_steps;
  }
  bool out_of_steps() const { return config_.max_steps > 0 && at_.step >= config_.max_steps; }
  /// The batch-norm statistics for validation and checkpoints; of a step that is not validated, the
  /// running ones.
  std::vector<float> statistics();
  /// The most of them on a rank.
  int64_t own_statistics_batches() const {
    return (statistics_batches_ + comm_.size() - 1) / comm_.size();
  }

  TrainConfig config_;
  Communicator& comm_;
  const DataSplit& data_;
  const std::atomic<bool>& stop_;
  Console& console_;
  MachineLoad load_;  ///< since the start of the epoch
  bool load_noted_ = false;
  Context ctx_;
  Context host_;  // for statistics of the gradient
  Model model_;
  SgdConfig sgd_config_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Loader> train_loader_, val_loader_, test_loader_;
  std::unique_ptr<Loader> statistics_loader_;  // with --bn-stats recompute
  int64_t statistics_batches_ = 0;             // of it, of all ranks
  // either the whole step is captured, or the host queues data, passes and the exchange
  std::unique_ptr<CapturedStep> captured_step_;
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::unique_ptr<CapturedPasses> passes_;
  RunFolder folder_;
  RankFiles files_;  // of the checkpoint in restore(), then of folder_
  std::unique_ptr<CsvFile> steps_csv_, metrics_csv_;  // rank 0 only
  std::unique_ptr<EventFile> events_;                 // rank 0 only, with --tensorboard
  std::unique_ptr<GradientStatistics> gradients_;     // rank 0 only, with --analyze-every
  std::unique_ptr<StepLog> log_;
  StepRecord step_;  // in progress
  Stopwatch watch_;  // of it
  Progress progress_;
  Position at_;
  int64_t saved_ = -1;            // step of the last checkpoint; -1: none
  Stopwatch since_saved_;         // then, or at the start
  int64_t asks_at_ = 0;           // step of the next look at it
  Change change_;                 // of a resumed run
  ops::LossSums val_;             // of the last validation, the same on every rank
  std::vector<float> renewed_;    // statistics recomputed
  int64_t renewed_at_step_ = -1;  // with the weights of this step
  bool stop_seen_ = false;
  SkippedImages skipped_;
  size_t planned_ = 0;        // bytes of this rank; 0: no plan yet
  const char* purpose_ = "";  // of memory that is allocated
  Stopwatch clock_;
};

}  // namespace tw
