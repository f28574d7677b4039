#include <fmt/ranges.h>

#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "apps/train/checkpoint_description.h"
#include "apps/train/plan_report.h"
#include "apps/train/run.h"
#include "apps/train/tuning_cache.h"
#include "comm/collectives/vendor.h"
#include "engine/core/hash.h"
#include "engine/core/registry.h"
#include "engine/core/text.h"
#include "engine/io/weights.h"

namespace tw {

Run::Run(Communicator& comm, const TrainConfig& config, const DataSplit& data,
         const std::atomic<bool>& stop, Console& console)
    : config_(config),
      comm_(comm),
      data_(data),
      stop_(stop),
      console_(console),
      ctx_(resolve_device(config.device),
           resolve_threads(config.threads_per_rank, ranks_of(config, comm)), comm.gpu()),
      host_(Device::cpu, ctx_.threads()),
      model_(config.model, {.image = data.train->image,
                            .classes = class_count(config, data),
                            .zero_init = config.zero_init,
                            .decay_all = config.decay_all}),
      sgd_config_(config.sgd()),
      progress_(config, comm.size()) {
  if (config.measure_wait) sgd_config_.barrier_comm = &comm_;
  // replaces `auto` and 0 by their actual values, which are printed and saved
  config_.threads_per_rank = ctx_.threads();
  config_.device = ctx_.device();
  config_.precision = resolve_precision(config.precision, ctx_.device());
  config_.image = data.train->image;
  config_.mean = data.mean;
  config_.deviation = data.deviation;
  config_.images = {data.train->size(), data.val->size()};
  config_.class_names = data.class_names;
  ctx_.set_math(
      {.tf32 = config_.precision == Precision::tf32, .deterministic = config_.deterministic});
}

void Run::load() {
  purpose_ = "batches of images";
  LoaderConfig loader{.batch = config_.batch_size * config_.accumulate,
                      .rank = comm_.rank(),
                      .ranks = ranks(),
                      .seed = static_cast<uint64_t>(config_.seed),
                      .threads = static_cast<int>(config_.loader_threads),
                      .device = ctx_.device(),
                      .shuffle_shards = config_.shuffle == Shuffle::shards};
  run_collectively(comm_, [&] {
    if (!config_.eval_only) train_loader_ = std::make_unique<Loader>(data_.train, loader);
    loader.batch = config_.batch_size;
    if (!model_.arena().statistics().empty())
      statistics_batches_ =
          BnStats(config_.bn_stats).batches(config_.batch_size, data_.train->size());
    if (statistics_batches_ > 0) {
      LoaderConfig whole = loader;
      whole.rank = 0, whole.ranks = 1;
      statistics_loader_ = std::make_unique<Loader>(data_.train, whole);
    }
    loader.training = false;
    val_loader_ = std::make_unique<Loader>(data_.val, loader);
    if (data_.test) test_loader_ = std::make_unique<Loader>(data_.test, loader);
  });
}

Planner::Memory Run::plan_model() { return model_.plan(ctx_, plan_config(config_, data_)); }

void Run::freeze() {
  if (config_.freeze.empty()) return;
  const std::string exchange = resolve_sparsifier(sgd_config_, config_.settings).exchange;
  check(!exchanges().find(exchange).value.moves_zeros(config_.settings),
        "[options] freeze is {}, but exchange {} with these settings moves parameters without a "
        "gradient",
        config_.freeze, exchange);
  ParameterArena& arena = model_.arena();
  std::vector<std::string> names;
  for (const Parameter& p : arena.parameters())
    for (size_t dot = 0; dot != std::string::npos;)
      names.push_back(p.name.substr(0, dot = p.name.find('.', dot + 1)));
  for (const std::string& pattern : split(config_.freeze, ',')) {
    check(arena.freeze(pattern) > 0, "[options] freeze is {}: {} has no such tensor{}", pattern,
          config_.model, nearest_hint(pattern, names));
  }
  size_t tensors = 0, elements = 0;
  for (const Parameter& p : arena.parameters())
    if (p.frozen) ++tensors, elements += p.length();
  check(elements < arena.size(), "[options] freeze is {}: no tensor is left to train",
        config_.freeze);
  console_.line("frozen: {} of {} tensors, {} of {} parameters", tensors, arena.parameters().size(),
                elements, arena.size());
}

uint64_t Run::check_pretrained() const {
  SafetensorsReader file = read_weights_file(config_.pretrained, "--pretrained");
  const ParameterArena& arena = model_.arena();
  if (const std::string prefix = drop_prefix(file, arena); !prefix.empty())
    console_.line("the names in {} begin with {}, which is dropped", config_.pretrained, prefix);
  const std::string head = head_prefix(arena);
  if (!config_.reset_head) {
    if (const std::string note = check_classes(file, config_); !note.empty())
      console_.line("{}", note);
    const int64_t classes = other_classes(file, arena);
    check(classes == 0,
          "[weights] {}: the last layer has {} outputs, this network wants {}: --reset-head starts "
          "a new last layer, --classes {} keeps this one, with label i of the data as output i",
          config_.pretrained, classes, model_.spec().classes, classes);
  }
  check_weights(file, arena, config_.reset_head ? head : "");
  return checksum(file.bytes());
}

Run::Start Run::starting_point() const {
  const RunFolder folder = find_run_folder(config_, ranks());
  const std::filesystem::path& checkpoint = folder.checkpoint;
  if (checkpoint.empty()) return {};
  TrainConfig config = config_;
  config.branches |= folder.branches();
  const Resumed found = [&] {
    try {
      return describe_checkpoint(checkpoint, config, ranks());
    } catch (const UserError& error) {
      fail("{}{}", error.what(), older_if_damaged(checkpoint, "--resume"));
    }
  }();
  return {fmt::format("{} at step {}{}{}", checkpoint.string(), found.position.step,
                      found.notice.empty() ? "" : ": ", found.notice),
          found.position};
}

void Run::plan() {
  purpose_ = "the plan";
  freeze();
  const bool validates_only = config_.eval_only && (config_.resume.empty() || !config_.dry_run);
  Start start;
  run_collectively(comm_, [&] {  // its errors come before the lines of the plan
    if (comm_.rank() == 0 && !validates_only) start = starting_point();
  });
  const std::vector<std::string> unused = unused_options(ctx_, config_, data_, model_, ranks());
  const bool sums =
      !config_.eval_only && comm_.size() > 1 &&
      std::ranges::count(config_.settings.unread({kSumCollective}), kSumCollective) == 0;
  if (sums && allreduces().find(config_.settings.text(kSumCollective)).value.by_library)
    vendor_of(comm_);
  Planner::Memory memory;
  plan_consistently(ctx_, comm_, [&] { memory = plan_model(); });
  const RunPlan plan = plan_run(config_, model_, memory, ranks(),
                                train_loader_ ? train_loader_->batches() : 0, start.at);
  planned_ = plan.memory_bytes();
  report_plan(console_, config_, data_, model_, plan);
  for (const std::string& note : unused) console_.paragraph("{}", note);
  std::string pretrained = "none";  // every rank reads its own
  run_collectively(comm_, [&] {
    if (!config_.pretrained.empty()) pretrained = fmt::format("{:016x}", check_pretrained());
  });
  check_same_setup(comm_, {"checksum of the pretrained weights is " + pretrained});
  run_collectively(comm_, [&] {
    if (comm_.rank() > 0 || (config_.eval_only && config_.resume.empty())) return;
    if (!config_.dry_run)
      folder_ = open_run_folder(config_, comm_.size());
    else if (!start.text.empty())
      console_.line("would resume {}", start.text);
  });
  if (!config_.plan_json || comm_.rank() > 0) return;
  Json json = to_json(plan, config_, data_, model_);
  json["resumes"] = start.text;
  json["without_effect"] = unused;
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void Run::restore() {
  folder_.path = broadcast_text(comm_, folder_.path.string());
  folder_.checkpoint = broadcast_text(comm_, folder_.checkpoint.string());
  if (config_.is_flag("resume") && config_.resumes_last() && folder_.checkpoint.empty())
    console_.line("new run: {} has no checkpoint to resume", folder_.path.string());
  if (!folder_.damaged.empty())
    console_.line("{} is damaged: the run goes on from an older one", folder_.damaged.string());
  folder_.branched_from = broadcast_text(comm_, folder_.branched_from);
  // the first checkpoint of a branch is that of the other run, which may have had other parts
  config_.branches |= folder_.branches();
  // a resumed run keeps the convolution algorithms that it began with
  if (!folder_.checkpoint.empty() && load_tuning_cache(ctx_, comm_, folder_.path)) plan_model();

  if (!folder_.checkpoint.empty() && has_processes())
    files_ = RankFiles::with_file(comm_, folder_.checkpoint / "model.safetensors");
  std::optional<uint64_t> seed;  // a checkpoint sets every value
  if (folder_.checkpoint.empty()) seed = static_cast<uint64_t>(config_.seed);
  purpose_ = "parameters, gradients and activations";
  model_.allocate(ctx_, seed);
  purpose_ = "momentum and residual";
  optimizer_ = make_optimizer(ctx_, comm_, model_.arena(), sgd_config_, config_.settings);
  try {
    run_collectively(comm_, [&] { read_weights(); });
  } catch (const UserError& error) {
    std::string older;
    if (comm_.rank() == 0) older = older_if_damaged(folder_.checkpoint, "--resume");
    fail("{}{}", error.what(), broadcast_text(comm_, older));
  }
  check_same_layout(comm_, model_.arena());
  model_.refresh(ctx_);
}

void Run::read_weights() {
  purpose_ = "reading the weights";
  if (!config_.pretrained.empty()) {
    SafetensorsReader file = read_weights_file(config_.pretrained, "--pretrained");
    drop_prefix(file, model_.arena());
    load_weights(file, model_.arena(), config_.reset_head ? head_prefix(model_.arena()) : "");
    console_.line("starting from the weights of {}{}", config_.pretrained,
                  config_.reset_head ? "; the last layer is new" : "");
  }
  if (folder_.checkpoint.empty()) return;
  const Resumed resumed =
      load_checkpoint(comm_, folder_.checkpoint, config_, model_, *optimizer_, files_);
  at_ = resumed.position;
  saved_ = at_.step;
  change_ = {.step = at_.step, .text = resumed.notice};
  if (train_loader_)
    check(at_.batch <= train_loader_->batches(),
          "[resume] the checkpoint is at batch {} of an epoch, but an epoch of this data has {}",
          at_.batch, train_loader_->batches());
  // with more steps, or on other ranks, an epoch may go on
  if (train_loader_) at_.to_validate &= at_.batch == train_loader_->batches() || out_of_steps();
  const bool trains = at_.epoch < config_.epochs && (at_.to_validate || !out_of_steps());
  check(trains || !config_.branches || config_.eval_only,
        "[resume] {} is at step {}, the end of {} epochs{}; a larger --epochs{} trains on",
        folder_.checkpoint.string(), at_.step, config_.epochs,
        config_.max_steps > 0 ? fmt::format(" or {} steps", config_.max_steps) : "",
        config_.max_steps > 0 ? " or --max-steps" : "");
  console_.line("resuming {} at step {}{}{}", folder_.checkpoint.string(), at_.step,
                resumed.notice.empty() ? "" : ": ", resumed.notice);
  if (!resumed.note.empty()) console_.line("{}", resumed.note);
}

void Run::adopt_checkpoint() {
  if (!config_.branches) return;
  std::vector<std::filesystem::path> names{folder_.checkpoint.filename()};
  if (config_.keep_best) names.emplace_back(best_name(at_.best_step));
  for (const std::filesystem::path& name : names) {
    const auto from = folder_.checkpoint.parent_path() / name, own = folder_.checkpoints() / name;
    if (std::filesystem::exists(from) && !std::filesystem::exists(own)) link_checkpoint(from, own);
  }
}

bool Run::can_capture_step() const {
  return ctx_.device() == Device::cuda && comm_.size() == 1 && config_.sparsifier == kDense &&
         config_.selector.empty() && config_.accumulate == 1 && config_.analyze_every == 0 &&
         config_.save_gradients == 0 && sgd_config_.local_steps == 0 && config_.freeze.empty();
}

void Run::open_tables() {
  purpose_ = "batches of images";
  if (can_capture_step()) {
    const bool resident = ResidentData::fits(ctx_, *data_.train);
    captured_step_ = std::make_unique<CapturedStep>(ctx_, model_, *data_.train, sgd_config_,
                                                    optimizer_->momentum(),
                                                    resident ? nullptr : train_loader_.get());
  } else {
    prefetcher_ = std::make_unique<DevicePrefetcher>(ctx_, *train_loader_, config_.accumulate);
    passes_ =
        std::make_unique<CapturedPasses>(ctx_, model_, config_.accumulate == 1 && !config_.overlap);
  }

  if (has_processes()) files_ = RankFiles::of_folder(comm_, folder_.path);
  if (const std::vector<int> others = files_.blind(); !others.empty())
    console_.line("rank 0 writes the checkpoints for rank {}: {} is not on every machine",
                  fmt::join(others, ", "), folder_.path.string());
  run_collectively(comm_, [&] {
    if (comm_.rank() != 0) return;
    try {
      // if this run trains no step, the row of an epoch cut short by --max-steps stays
      const bool trained = at_.batch > 0 && (at_.to_validate || out_of_steps());
      const int64_t rows = at_.epoch + (trained && !at_.to_validate ? 1 : 0);
      // before anything is changed
      CsvFile::check(folder_.file("steps.csv"), kStepHeader, at_.step);
      CsvFile::check(folder_.file("metrics.csv"), kMetricsHeader, rows);
      write_config(folder_, config_, comm_, train_loader_->batches(), change_);
      if (folder_.created) folder_.created->keep();
      save_tuning_cache(ctx_, folder_.path);
      const std::filesystem::path log = folder_.file("run.log");
      if (std::filesystem::is_symlink(log)) std::filesystem::remove(log);
      console_.log_to(log.string(), Console::Log::last);
      adopt_checkpoint();
      remove_newer_checkpoints(folder_.checkpoints(), at_.step);
      remove_newer_gradients(folder_.gradients(), at_.step);
      if (config_.save_gradients > 0) std::filesystem::create_directories(folder_.gradients());
      if (config_.keep_best && !keep_best_checkpoint(folder_.checkpoints(), at_.best_step))
        at_.best_step = 0;
      remove_old_checkpoints(folder_.checkpoints(), config_.keep_checkpoints, 0);
      steps_csv_ = std::make_unique<CsvFile>(folder_.file("steps.csv"), kStepHeader, at_.step);
      metrics_csv_ = std::make_unique<CsvFile>(folder_.file("metrics.csv"), kMetricsHeader, rows);
      if (config_.analyze_every > 0)
        gradients_ = std::make_unique<GradientStatistics>(
            host_, folder_.path, at_.epoch + (trained ? 1 : 0), !optimizer_->residual().empty());
      if (config_.tensorboard)
        events_ = std::make_unique<EventFile>(folder_.file(EventFile::kName), at_.step,
                                              at_.to_validate ? kEpochEvents : "");
      if (const int64_t last = steps_csv_->last_kept(); last < at_.step)
        console_.line("{} has no rows of the steps {} to {}", folder_.file("steps.csv").string(),
                      last + 1, at_.step);
      if (const int64_t last = metrics_csv_->last_kept(); last < at_.epoch)
        console_.line("{} has no rows of the epochs {} to {}", folder_.file("metrics.csv").string(),
                      last + 1, at_.epoch);
    } catch (const Fault& fault) {
      refuse_folder(fault);
    }
  });
  // if the best checkpoint is gone, the next validation is the best
  at_.best_step = std::stoll(broadcast_text(comm_, std::to_string(at_.best_step)));
  if (at_.best_step == 0) at_.best_top1 = Position{}.best_top1;
  log_ = std::make_unique<StepLog>([this](const StepRecord& step) { add_step(step); });
  console_.line("writing to {}", folder_.path.string());
  console_.line("to continue after a kill: {}", continuing_command(folder_, config_, comm_.size()));
}

}  // namespace tw
