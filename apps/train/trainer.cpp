#include "apps/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "apps/common/rank_utils.h"
#include "apps/train/checkpoint_description.h"
#include "apps/train/evaluate.h"
#include "apps/train/plan_report.h"
#include "apps/train/run.h"
#include "engine/io/weights.h"

namespace tw {

RunResult train(Communicator& comm, const TrainConfig& config, const DataSplit& data,
                const std::atomic<bool>& stop, Console& console) {
  if (config.class_map.empty()) return Run(comm, config, data, stop, console).run();
  const DataSplit mapped = map_classes(comm, config, Run::ranks_of(config, comm), data);
  return Run(comm, config, mapped, stop, console).run();
}

RunResult Run::run() {
  const auto way_on = [&] {
    return fmt::format("; from step {}, continue with {}", saved_,
                       continuing_command(folder_, config_, comm_.size()));
  };
  try {
    return run_to_the_end();
  } catch (const OutOfMemory& error) {
    rethrow_with_plan(comm_, purpose_, planned_, error.what());
  } catch (const std::bad_alloc&) {
    rethrow_with_plan(comm_, purpose_, planned_, "none is left");
  } catch (const CollectiveFault&) {  // of the numbers: it would come again
    throw;
  } catch (const LocalUserError& error) {  // of an image
    if (saved_ < 0 || config_.eval_only) throw;
    fail<LocalUserError>("{}{}", error.what(), way_on());
  } catch (const Fault& fault) {
    if (saved_ < 0) throw;
    fail<Fault>("{}{}", fault.what(), way_on());
  }
}

RunResult Run::run_to_the_end() {
  load();
  plan();
  if (config_.dry_run) return {};
  restore();
  if (config_.eval_only) return evaluate_only();
  if (const std::optional<RunResult> result = result_before()) return *result;
  open_tables();
  // all ranks end alike: what this depends on, also the result of a validation, is equal on all
  while (at_.epoch < config_.epochs && (at_.to_validate || !out_of_steps())) {
    if (!at_.to_validate) train_epoch();
    const bool whole = at_.batch == train_loader_->batches();
    if (whole || out_of_steps()) close_epoch(whole);
    if (stop_seen_) return finish(true);
  }
  return finish(false);
}

void Run::train_epoch() {
  purpose_ = "a training step";
  const int64_t batches = train_loader_->batches();
  if (captured_step_)
    captured_step_->start_epoch(static_cast<uint32_t>(at_.epoch), at_.batch);
  else
    prefetcher_->start(static_cast<uint32_t>(at_.epoch), at_.batch);
  load_ = {};
  Stopwatch watch;
  // a step moves at_.step and at_.batch, and sets stop_seen_ when a rank was asked to stop
  while (at_.batch < batches && !stop_seen_ && !out_of_steps()) {
    const int64_t step = at_.step;
    if (captured_step_)
      train_captured_steps();
    else
      log_step(train_step());
    const std::string notice =
        captured_step_ ? captured_step_->take_notice() : passes_->take_notice();
    if (!notice.empty()) console_.line("note: {}", notice);
    progress_.add_time(at_.step - step, watch.lap());
    show_progress(place());
    const bool due = config_.checkpoint_steps > 0 && at_.step % config_.checkpoint_steps == 0;
    // after the last step, the row of the epoch comes before the checkpoint
    if (at_.batch < batches && !out_of_steps() && (due || ask_for_checkpoint())) checkpoint();
  }
  log_->flush(comm_);
}

void Run::log_step(const StepRecord& step) {
  progress_.add(step);
  log_->add(comm_, step);
}

Place Run::place() const {
  return {.epoch = at_.epoch,
          .batch = at_.batch,
          .batches = train_loader_ ? train_loader_->batches() : 0,
          .step = at_.step,
          .to_validate = val_loader_ ? own_statistics_batches() + val_loader_->batches() : 0};
}

void Run::show_progress(const Place& at) {
  console_.progress([&](int columns) { return progress_.line(at, columns); });
}

// log_ calls it with each step, merged over the ranks
void Run::add_step(const StepRecord& step) {
  at_.totals.add(step);
  at_.run.add(step);
  progress_.add_merged(step);
  if (!steps_csv_) return;
  const std::string row = step_row(step, at_.epoch + 1);
  steps_csv_->row(row);
  if (events_) events_->row(step.step, kStepEvents, kStepHeader, row);
}

void Run::close_epoch(bool whole) {
  const int64_t epoch = at_.epoch + 1;
  const bool last = epoch >= config_.epochs || out_of_steps();
  const auto due = [&](int64_t every) { return last || (every > 0 && epoch % every == 0); };
  const double lr = rate(at_.batch - 1);
  const bool step_due = config_.checkpoint_steps > 0 && at_.step % config_.checkpoint_steps == 0;
  const bool saves = step_due || due(config_.checkpoint_every),
             validates = config_.eval_every && due(*config_.eval_every);
  if (gradients_) {
    const Histogram values = gradients_->write(epoch);
    if (events_ && values.number > 0) events_->histogram(at_.step, "gradient_and_residual", values);
  }
  if (at_.to_validate || (saves && validates)) {  // a failed validation loses nothing of the epoch
    at_.to_validate = true;
    checkpoint();
  }
  val_ = {};
  if (validates) validate();
  if (metrics_csv_) {
    const std::string row = metrics_row(epoch, lr, density(), at_.totals, val_);
    metrics_csv_->row(row);
    if (events_) events_->row(at_.step, kEpochEvents, kMetricsHeader, row);
  }
  report_epoch(console_, epoch, config_.epochs, at_.totals, val_);
  if (at_.to_validate && !std::isfinite(val_.loss) && comm_.rank() == 0)
    remove_checkpoint(folder_.checkpoints() / checkpoint_name(at_.step));
  check_finite(val_, fmt::format("after epoch {}; a smaller --lr may help", epoch));
  skipped_.report(comm_, data_, console_);
  report_waiting(console_, at_.totals, datasets().find(config_.dataset).value.image_files);
  if (!load_noted_)
    load_noted_ = report_load(console_, load_.cores_taken(comm_, ctx_.threads()), ctx_.threads());
  if (whole) {
    ++at_.epoch;
    at_.batch = 0;
    at_.totals = {};
  }
  const double top1 = share(val_.top1, val_.count);
  const bool best = config_.keep_best && val_.count > 0 && top1 > at_.best_top1;
  if (best) at_.best_top1 = top1, at_.best_step = at_.step;
  if (at_.to_validate)
    complete_checkpoint();
  else if (best || saves)
    checkpoint();
}

bool Run::stops_on_any_rank() {
  const std::vector<uint8_t> all = gather(comm_, static_cast<uint8_t>(stop_.load()));
  return std::ranges::find(all, 1) != all.end();
}

void Run::renew_statistics() {
  if (!statistics_loader_ || renewed_at_step_ == at_.step) return;
  Place at = place();
  renewed_ = recompute_statistics(ctx_, comm_, model_, *statistics_loader_, statistics_batches_,
                                  static_cast<uint64_t>(config_.seed), [&](int64_t done) {
                                    at.validated = done;
                                    show_progress(at);
                                  });
  renewed_at_step_ = at_.step;
}

void Run::validate() {
  purpose_ = "the validation";
  const Stopwatch watch;
  renew_statistics();
  const StatisticsSwap swap(model_, statistics());
  Place at = place();
  val_ = evaluate(ctx_, comm_, model_, *val_loader_, [&](int64_t done) {
    at.validated = own_statistics_batches() + done;
    show_progress(at);
    // training ends at a step: its epoch is closed with the result of the whole validation
    if (config_.eval_only) stop_seen_ = stops_on_any_rank();
    return !stop_seen_ || !config_.eval_only;
  });
  progress_.add_validation(watch.total());
}

std::vector<float> Run::statistics() {
  if (renewed_at_step_ == at_.step) return renewed_;
  return statistics_of_all(comm_, model_, !BnStats(config_.bn_stats).of_rank_0);
}

void Run::sync_tables() {
  if (folder_.lock) folder_.lock->check_place(folder_.path);  // on rank 0
  if (steps_csv_) steps_csv_->sync();
  if (metrics_csv_) metrics_csv_->sync();
  if (events_) events_->sync();
  if (gradients_) gradients_->sync();
}

void Run::checkpoint() {
  purpose_ = "a checkpoint";
  log_->flush(comm_);
  sync_tables();
  const std::vector<float> common = statistics();
  if (optimizer_->same_on_all_ranks()) {
    // damaged messages may leave a difference: no checkpoint may hold it
    const StatisticsSwap swap(model_, common);
    common_weights_hash(comm_, model_.arena());  // a Fault where they differ
  }
  save_checkpoint(comm_, folder_.checkpoints(), config_, at_, model_, *optimizer_, common, files_);
  saved_ = asks_at_ = at_.step;
  since_saved_ = {};
  keep_best();
}

bool Run::ask_for_checkpoint() {
  if (config_.checkpoint_minutes == 0 || at_.step < asks_at_) return false;
  const double seconds = gather(comm_, since_saved_.total()).front();
  const double a_step = seconds / static_cast<double>(at_.step - std::max<int64_t>(saved_, 0));
  const double left = 60 * config_.checkpoint_minutes - seconds;
  asks_at_ = at_.step + std::max<int64_t>(1, static_cast<int64_t>(left / a_step / 2));
  return left < a_step;
}

void Run::complete_checkpoint() {
  at_.to_validate = false;
  sync_tables();
  if (comm_.rank() == 0) {
    if (renewed_at_step_ == at_.step)
      replace_statistics(folder_.checkpoints() / checkpoint_name(at_.step), model_, renewed_);
    write_validated(folder_.checkpoints() / checkpoint_name(at_.step), at_);
    remove_old_checkpoints(folder_.checkpoints(), config_.keep_checkpoints, 0);
  }
  keep_best();
}

void Run::keep_best() {
  if (comm_.rank() != 0 || !config_.keep_best || at_.best_step == 0) return;
  keep_best_checkpoint(folder_.checkpoints(), at_.best_step);
  remove_old_checkpoints(folder_.checkpoints(), 0, at_.best_step);
}

std::optional<RunResult> Run::result_before() {
  if (folder_.checkpoint.empty() || at_.to_validate ||
      (at_.epoch < config_.epochs && !out_of_steps()))
    return std::nullopt;
  std::string summary;
  run_collectively(comm_, [&] {
    if (comm_.rank() == 0) summary = read_text_if_any(folder_.file("summary.json"), kMostJson);
  });
  const std::optional<RunResult> result =
      finished_result(broadcast_text(comm_, summary), at_.step, data_.test_name);
  if (result) console_.line("{} is finished; it has {} steps", folder_.path.string(), at_.step);
  return result;
}

void Run::test(RunSummary& summary, bool best) {
  if (!data_.test) return;
  purpose_ = "the test";
  summary.test_name = data_.test_name;
  summary.test_weights = "the last step";
  std::optional<StatisticsSwap> swap;
  if (best && config_.keep_best && at_.best_step > 0) {
    summary.test_weights = best_name(at_.best_step);
    const auto file = folder_.checkpoints() / summary.test_weights / "model.safetensors";
    if (has_processes()) files_ = RankFiles::with_file(comm_, file);
    load_weights(files_.read(comm_, file), model_.arena());
    model_.refresh(ctx_);
  } else {
    renew_statistics();
    swap.emplace(model_, statistics());
  }
  Place at = place();
  at.to_validate = test_loader_->batches();
  const ops::LossSums sums = evaluate(ctx_, comm_, model_, *test_loader_, [&](int64_t done) {
    at.validated = done;
    show_progress(at);
    return true;
  });
  summary.result.test_top1 = share(sums.top1, sums.count);
  summary.result.test_top5 = share(sums.top5, sums.count);
}

RunResult Run::evaluate_only() {
  validate();
  if (stop_seen_) {
    console_.line("stopped by a signal after {} images", val_.count);
    return result_of({}, true);
  }
  check_finite(val_, "with these weights");
  RunSummary summary{.result = result_of(val_), .classes = data_.train->classes};
  test(summary, false);
  skipped_.report(comm_, data_, console_);
  const RunResult& result = summary.result;
  console_.line("top-1 {:.4f}{}  loss {:.4f} on {} ({} images)", result.val_top1,
                top5_text("  ", result.val_top5, summary.classes), result.val_loss, data_.val_name,
                val_.count);
  if (data_.test) console_.line("{}", test_text(summary));
  return result;
}

RunResult Run::finish(bool stopped) {
  // no epoch was trained
  const bool validates = !stopped && val_.count == 0 && config_.eval_every.has_value();
  if (validates) renew_statistics();
  if (stopped || config_.epochs == 0) checkpoint();
  if (validates) validate();
  const StatisticsSwap swap(model_, statistics());
  RunSummary summary{.result = result_of(val_, stopped),
                     .classes = data_.train->classes,
                     .val_name = data_.val_name,
                     .seconds = clock_.total(),
                     .weights_hash = common_weights_hash(comm_, model_.arena()),
                     .resumed = !folder_.checkpoint.empty()};
  if (!stopped) test(summary, true);
  skipped_.report(comm_, data_, console_);
  if (folder_.lock) folder_.lock->check_place(folder_.path);
  if (comm_.rank() == 0) write_summary(console_, folder_, config_, at_, summary, comm_.size());
  // a rank that exits with an error code may end the others: wait until rank 0 has written
  barrier(comm_);
  return summary.result;
}

}  // namespace tw
