#include "apps/train/trainer.h"

#include <algorithm>

#include "apps/common/rank_utils.h"
#include "apps/train/checkpoint.h"
#include "apps/train/csv.h"
#include "apps/train/evaluate.h"
#include "apps/train/gradient_statistics.h"
#include "apps/train/graph_step.h"
#include "apps/train/pass_graphs.h"
#include "apps/train/plan_report.h"
#include "apps/train/run_folder.h"
#include "apps/train/schedule.h"
#include "apps/train/skipped_images.h"
#include "apps/train/step_log.h"
#include "apps/train/summary.h"
#include "apps/train/tuning_cache.h"
#include "data/loader.h"
#include "engine/core/stopwatch.h"
#include "engine/io/weights.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

/// The parts of a run on this rank.
class Run {
 public:
  Run(Communicator& comm, const TrainConfig& config, const DataSplit& data,
      const std::atomic<bool>& stop, Console& console)
      : config_(config),
        comm_(comm),
        data_(data),
        stop_(stop),
        console_(console),
        ctx_(resolved_device(config), resolved_threads(config, comm.size()), comm.gpu()),
        host_(Device::cpu, ctx_.threads()),
        model_(config.model, {.image = data.train->image,
                              .classes = resolved_classes(config, data),
                              .zero_init = config.zero_init,
                              .decay_all = config.decay_all}) {}

  /// Faults of memory come with what was planned.
  RunResult run() {
    try {
      return run_to_the_end();
    } catch (const OutOfMemory& error) {
      rethrow_with_plan(comm_, planned_, error);
    }
  }

 private:
  RunResult run_to_the_end();
  Planner::Memory plan() { return model_.plan(ctx_, resolved_plan(config_, data_)); }
  void prepare();
  void train_epoch();
  StepRecord train_step();
  void train_graph_steps();
  int64_t steps_ahead() const;
  double rate(int64_t batch) const {
    return learning_rate_factor(config_, comm_.size()) *
           learning_rate(config_, at_.epoch, batch, train_loader_->batches());
  }
  void close_epoch(bool whole);
  void validate();
  void checkpoint();
  std::vector<float> statistics() {
    return statistics_of_all(host_, comm_, model_, config_.bn_stats == "average");
  }
  RunResult evaluate_only();
  RunResult finish(bool stopped);

  /// Of the gradient, in the epoch at hand; dense SGD always sends all of it.
  double density() const { return sgd_->residual().empty() ? 1 : density_of(config_, at_.epoch); }
  bool out_of_steps() const { return config_.max_steps > 0 && at_.step >= config_.max_steps; }

  TrainConfig config_;
  Communicator& comm_;
  const DataSplit& data_;
  const std::atomic<bool>& stop_;
  Console& console_;
  Context ctx_;
  Context host_;  // of what the ranks do together
  Model model_;
  std::unique_ptr<SyncSgd> sgd_;
  std::unique_ptr<Loader> train_loader_, val_loader_;
  std::unique_ptr<GraphStep> graph_;  // null where the host takes part in the step, and then
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::unique_ptr<PassGraphs> passes_;
  RunFolder folder_;
  std::unique_ptr<CsvFile> steps_csv_, metrics_csv_;  // rank 0 only
  std::unique_ptr<GradientStatistics> gradients_;     // rank 0 only, if asked for
  std::unique_ptr<StepLog> log_;
  Position at_;
  ops::LossSums val_;
  bool stop_seen_ = false;
  SkippedImages skipped_;
  size_t planned_ = 0;  // bytes of this rank
  Stopwatch clock_;
};

void Run::prepare() {
  config_.threads_per_rank = ctx_.threads();
  ctx_.set_math({.tf32 = config_.precision == "tf32", .deterministic = config_.deterministic});
  if (config_.precision != "tf32") config_.precision = name(resolved_precision(config_));
  config_.device = name(ctx_.device());
  // first of all: it refuses a batch larger than the data before any memory is spent
  LoaderConfig loader{.batch = config_.batch_size * config_.accumulate,
                      .rank = comm_.rank(),
                      .ranks = comm_.size(),
                      .seed = static_cast<uint64_t>(config_.seed),
                      .threads = static_cast<int>(config_.loader_threads),
                      .device = ctx_.device(),
                      .shuffle_shards = config_.shuffle == "shards"};
  run_collectively(host_, comm_, [&] {
    if (!config_.eval_only) train_loader_ = std::make_unique<Loader>(data_.train, loader);
    loader.training = false;
    loader.batch = config_.batch_size;
    val_loader_ = std::make_unique<Loader>(data_.val, loader);
  });

  Planner::Memory memory;
  plan_consistently(ctx_, host_, comm_, [&] { memory = plan(); });
  SgdConfig sgd = config_.sgd();
  if (config_.measure_wait) sgd.barrier_comm = &comm_;
  planned_ = report_plan(console_, config_, data_, model_, memory,
                         resolve_sparsifier(sgd, config_.settings), comm_.size());
  run_collectively(host_, comm_, [&] {
    if (!config_.pretrained.empty())
      check_weights(SafetensorsReader(config_.pretrained), model_.arena());
    const bool wanted = !config_.dry_run && (!config_.eval_only || !config_.resume.empty());
    if (comm_.rank() == 0 && wanted) folder_ = open_run_folder(config_, comm_.size());
  });
  if (config_.dry_run) return;
  folder_.path = broadcast_text(host_, comm_, folder_.path.string());
  folder_.checkpoint = broadcast_text(host_, comm_, folder_.checkpoint.string());
  // a resumed run goes on with the algorithms it began with
  if (!folder_.checkpoint.empty() && load_tuning_cache(ctx_, host_, comm_, folder_.path)) plan();

  model_.allocate(ctx_, static_cast<uint64_t>(config_.seed));
  sgd_ = std::make_unique<SyncSgd>(ctx_, comm_, model_.arena(), sgd, config_.settings);
  run_collectively(host_, comm_, [&] {
    if (!config_.pretrained.empty())
      load_weights(SafetensorsReader(config_.pretrained), model_.arena());
    if (folder_.checkpoint.empty()) return;
    const Resumed resumed = load_checkpoint(comm_, folder_.checkpoint, config_, model_, *sgd_);
    at_ = resumed.position;
    if (train_loader_)
      check(at_.batch <= train_loader_->batches(),
            "[resume] the checkpoint stands at batch {} of an epoch, which has {} with this data",
            at_.batch, train_loader_->batches());
    console_.line("resuming {} at step {}{}{}", folder_.checkpoint.string(), at_.step,
                  resumed.notice.empty() ? "" : ": ", resumed.notice);
  });
  check_same_layout(host_, comm_, model_.arena());
  model_.refresh(ctx_);
  if (config_.eval_only) return;
  if (GraphStep::suits(ctx_, comm_, config_)) {
    const bool resident = ResidentData::fits(ctx_, *data_.train);
    graph_ = std::make_unique<GraphStep>(ctx_, model_, config_, *data_.train, sgd_->momentum(),
                                         resident ? nullptr : train_loader_.get());
  } else {
    prefetcher_ = std::make_unique<DevicePrefetcher>(ctx_, *train_loader_, config_.accumulate);
    passes_ = std::make_unique<PassGraphs>(ctx_, model_, config_);
  }

  const bool root = comm_.rank() == 0;
  run_collectively(host_, comm_, [&] {
    if (!root) return;
    try {
      write_config(folder_, config_, comm_);
      save_tuning_cache(ctx_, folder_.path);
      remove_newer_checkpoints(folder_.checkpoints(), at_.step);
      // an epoch cut short has its row, which stays if nothing is added to it
      const int64_t rows = at_.epoch + (at_.batch > 0 && out_of_steps() ? 1 : 0);
      steps_csv_ = std::make_unique<CsvFile>(folder_.file("steps.csv"), kStepHeader, at_.step);
      metrics_csv_ = std::make_unique<CsvFile>(folder_.file("metrics.csv"), kMetricsHeader, rows);
      if (config_.analyze_every > 0)
        gradients_ = std::make_unique<GradientStatistics>(host_, folder_.path, rows);
    } catch (const Fault& fault) {
      throw UserError(fault.what());  // nothing has run yet: the folder is not fit for a run
    }
  });
  log_ = std::make_unique<StepLog>([this](const StepRecord& step) {
    at_.totals.add(step);
    at_.run.add(step);
    if (steps_csv_) steps_csv_->row(step_row(step, at_.epoch + 1));
  });
  console_.line("writing to {}", folder_.path.string());
}

StepRecord Run::train_step() {
  StepRecord record;
  Stopwatch watch;
  record.lr = rate(at_.batch);
  record.density = density();
  sgd_->begin({.step = static_cast<uint64_t>(at_.step),
               .lr = record.lr,
               .density = record.density,
               .stop = stop_.load()});
  ops::LossSums sums;
  const int64_t parts = config_.accumulate;
  for (int64_t part = 0; part < parts; ++part) {
    load_micro_batch(comm_, *prefetcher_, model_);
    record.phases.data += watch.lap();
    PassArgs pass{
        .ctx = ctx_,
        .accumulate = part > 0,
        .seed = static_cast<uint64_t>(config_.seed) * 65536 + static_cast<uint64_t>(comm_.rank()),
        .step = static_cast<uint64_t>(at_.step * parts + part)};
    if (part == parts - 1)
      pass.on_gradient_ready = [this](const Parameter& parameter) {
        sgd_->gradient_ready(parameter);
      };
    passes_->queue_forward(pass, 1.0f / static_cast<float>(parts));
    record.phases.forward += watch.lap();
    prefetcher_->prefetch();
    record.phases.data += watch.lap();
    sums += model_.take_sums(ctx_);
    record.phases.forward += watch.lap();
    passes_->backward(pass);
    ctx_.synchronize();
    record.phases.backward += watch.lap();
  }

  if (gradients_ && at_.step % config_.analyze_every == 0)
    gradients_->add(host_, model_.arena().host_gradients().span(), sgd_->host_residual().span(),
                    record.density);
  const StepReport report = sgd_->finish();
  watch.lap();
  model_.refresh(ctx_);
  record.phases.select = report.sec_select;
  record.phases.exchange = report.sec_exchange;
  record.phases.update = report.sec_update + watch.lap();
  record.wait = report.sec_wait;
  stop_seen_ = report.stop;

  ++at_.step;
  ++at_.batch;
  record.step = at_.step;
  record.loss = sums.loss;
  record.top1 = sums.top1;
  record.images = sums.count;
  record.nnz = static_cast<double>(report.nnz);
  record.k = static_cast<double>(report.k);
  record.bytes = static_cast<double>(report.bytes_sent);
  record.seconds = watch.total();
  return record;
}

/// How many steps may pass before the host has something to do.
int64_t Run::steps_ahead() const {
  int64_t n = std::min(graph_->most(), train_loader_->batches() - at_.batch);
  if (config_.max_steps > 0) n = std::min(n, config_.max_steps - at_.step);
  const int64_t every = config_.checkpoint_steps;
  return every > 0 ? std::min(n, every - at_.step % every) : n;
}

void Run::train_graph_steps() {
  const int64_t steps = steps_ahead();
  std::vector<float> rates;
  for (int64_t i = 0; i < steps; ++i) rates.push_back(static_cast<float>(rate(at_.batch + i)));
  Stopwatch watch;
  const double waited = graph_->waited();
  const auto sums = graph_->run(static_cast<uint64_t>(at_.step), rates);
  const double seconds = watch.total() / static_cast<double>(steps);
  const double data_seconds = (graph_->waited() - waited) / static_cast<double>(steps);
  stop_seen_ = stop_.load();
  for (size_t i = 0; i < sums.size(); ++i) {
    const double lr = rate(at_.batch);
    ++at_.step;
    ++at_.batch;
    StepRecord record;
    record.step = at_.step;
    record.lr = lr;
    record.density = 1;
    record.loss = sums[i].loss;
    record.top1 = sums[i].top1;
    record.images = sums[i].count;
    record.nnz = record.k = static_cast<double>(model_.arena().size());
    record.seconds = seconds;
    record.phases.data = data_seconds;
    log_->add(host_, comm_, record);
  }
}

void Run::train_epoch() {
  const int64_t batches = train_loader_->batches(), first = at_.batch;
  if (graph_)
    graph_->start_epoch(static_cast<uint32_t>(at_.epoch), first);
  else
    prefetcher_->start(static_cast<uint32_t>(at_.epoch), first);
  Stopwatch watch;
  const double global_batch =
      static_cast<double>(config_.batch_size * config_.accumulate * comm_.size());
  while (at_.batch < batches && !stop_seen_ && !out_of_steps()) {
    if (graph_)
      train_graph_steps();
    else
      log_->add(host_, comm_, train_step());
    const double done = static_cast<double>(at_.batch - first);
    const double left = static_cast<double>(batches - at_.batch);
    console_.progress({.epoch = at_.epoch + 1,
                       .epochs = config_.epochs,
                       .done = at_.batch,
                       .total = batches,
                       .images_per_s = done * global_batch / watch.total(),
                       .seconds_left = watch.total() / done * left});
    const bool due = config_.checkpoint_steps > 0 && at_.step % config_.checkpoint_steps == 0;
    if (due && at_.batch < batches) checkpoint();
  }
  log_->flush(host_, comm_);
  check(at_.batch == first || at_.totals.images > 0,
        "[data] all training images of epoch {} are damaged", at_.epoch + 1);
}

/// Validates and reports an epoch; one cut short by --max-steps stays open for a resumed run.
void Run::close_epoch(bool whole) {
  const int64_t epoch = at_.epoch + 1;
  const bool last = epoch >= config_.epochs || out_of_steps();
  const auto due = [&](int64_t every) { return last || (every > 0 && epoch % every == 0); };
  const double lr = rate(at_.batch - 1);
  val_ = {};
  if (due(config_.eval_every)) validate();
  if (metrics_csv_) metrics_csv_->row(metrics_row(epoch, lr, density(), at_.totals, val_));
  report_epoch(console_, epoch, config_.epochs, at_.totals, val_);
  check_finite(val_, epoch);
  if (gradients_) gradients_->write(epoch);
  skipped_.report(host_, comm_, data_, console_);
  report_waiting(console_, at_.totals);
  if (whole) {
    ++at_.epoch;
    at_.batch = 0;
    at_.totals = {};
  }
  if (due(config_.checkpoint_every)) checkpoint();
}

void Run::validate() {
  const StatisticsSwap swap(model_, statistics());
  val_ = evaluate(ctx_, host_, comm_, model_, *val_loader_);
}

void Run::checkpoint() {
  log_->flush(host_, comm_);
  save_checkpoint(host_, comm_, folder_.checkpoints(), config_, at_, model_, *sgd_, statistics());
}

RunResult Run::finish(bool stopped) {
  if (stopped || config_.epochs == 0) checkpoint();
  if (!stopped && val_.count == 0) validate();  // there was nothing to train
  skipped_.report(host_, comm_, data_, console_);
  const StatisticsSwap swap(model_, statistics());
  const RunSummary summary{.result = result_of(val_, stopped),
                           .val_name = data_.val_name,
                           .seconds = clock_.total(),
                           .weights_hash = common_weights_hash(host_, comm_, model_.arena())};
  if (comm_.rank() == 0) write_summary(console_, folder_, config_, at_, summary);
  barrier(host_,
          comm_);  // a rank that ends with a code may end the others: not while one writes
  return summary.result;
}

RunResult Run::evaluate_only() {
  validate();
  skipped_.report(host_, comm_, data_, console_);
  check_finite(val_, at_.epoch);
  const RunResult result = result_of(val_);
  console_.line("top-1 {:.4f}  top-5 {:.4f}  loss {:.4f} on {} ({} images)", result.val_top1,
                result.val_top5, result.val_loss, data_.val_name, val_.count);
  return result;
}

RunResult Run::run_to_the_end() {
  prepare();
  if (config_.dry_run) return {};
  if (config_.eval_only) return evaluate_only();
  while (at_.epoch < config_.epochs && !out_of_steps()) {
    train_epoch();
    const bool whole = at_.batch == train_loader_->batches();
    if (whole || out_of_steps()) close_epoch(whole);
    if (stop_seen_) return finish(true);
  }
  return finish(false);
}

}  // namespace

RunResult train(Communicator& comm, const TrainConfig& config, const DataSplit& data,
                const std::atomic<bool>& stop, Console& console) {
  return Run(comm, config, data, stop, console).run();
}

}  // namespace tw
