#include "apps/train/plan_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "apps/common/comm_setup.h"
#include "apps/common/resolve.h"
#include "apps/common/system_files.h"
#include "apps/train/schedule.h"
#include "engine/core/buffer.h"
#include "engine/core/error.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

/// The emulated link, if the cost model has all of it.
std::optional<LinkCost> link_of(const TrainConfig& config, const Sparsifier& sparsifier,
                                int ranks) {
  const bool nodes =
      config.comm.ranks_per_node > 1 || exchanges().find(sparsifier.exchange).value.forms_nodes;
  if (config.comm.link.empty() || nodes) return std::nullopt;
  const Topology topology = parse_link(config.comm.link);
  if (topology.ranks_per_node > 1) return std::nullopt;
  return topology.cost(ranks);
}

}  // namespace

int64_t class_count(const TrainConfig& config, const DataSplit& data) {
  const int64_t found = data.train->classes;
  check(config.classes == 0 || config.classes >= found, "[options] classes is {}; the data has {}",
        config.classes, found);
  check_classes(std::max(config.classes, found), config.data_dir);
  return std::max(config.classes, found);
}

PlanConfig plan_config(const TrainConfig& config, const DataSplit& data) {
  return {.batch = config.batch_size,
          .activations =
              activations_of(resolve_precision(config.precision, resolve_device(config.device))),
          .label_smoothing = static_cast<float>(config.label_smoothing),
          .recompute = config.recompute == Recompute::blocks,
          .mean = data.mean,
          .deviation = data.deviation};
}

RunPlan plan_run(const TrainConfig& config, const Model& model, const Planner::Memory& memory,
                 int ranks, int64_t steps_per_epoch, const Position& at) {
  const SgdConfig sgd = config.sgd();
  const ParameterArena& arena = model.arena();
  RunPlan plan{.ranks = ranks,
               .memory = memory,
               .parameter_bytes = 2 * arena.size() * sizeof(float),
               .sgd = SgdPlan(arena, sgd, config.settings),
               .epochs = config.epochs,
               .steps_per_epoch = steps_per_epoch,
               .steps = at.step + std::max<int64_t>(
                                      0, (config.epochs - at.epoch) * steps_per_epoch - at.batch),
               .steps_done = at.step,
               .steps_per_exchange = std::max<int64_t>(1, sgd.local_steps)};
  const bool selects = !plan.sgd.sparsifier.selector.empty();
  const std::optional<LinkCost> link = link_of(config, plan.sgd.sparsifier, ranks);
  std::vector<double> densities{selects ? config.density : 1};
  const auto has_that_of_step = [](const Bucket& bucket) {
    return !bucket.packed &&
           (bucket.densities.empty() || std::ranges::count(bucket.densities, 0) > 0);
  };
  if (selects && std::ranges::any_of(plan.sgd.buckets, has_that_of_step))
    densities.insert(densities.begin(), config.density_warmup->begin(),
                     config.density_warmup->end());
  plan.dense_exchanges = static_cast<int64_t>(plan.sgd.dense_exchanges());
  if ((selects || plan.dense_exchanges > 0) && !config.eval_only)
    plan.dense_bytes_sent =
        SgdPlan(arena, {.local_steps = sgd.local_steps}, config.settings).bytes_sent(ranks, 1);
  for (const double density : densities)
    plan.stages.push_back({.density = density,
                           .entries = plan.sgd.entries(density),
                           .bytes_sent = plan.sgd.bytes_sent(ranks, density),
                           .seconds = link ? plan.sgd.seconds(*link, *link, ranks, density)
                                           : std::numeric_limits<double>::quiet_NaN()});
  if (steps_per_epoch == 0) return plan;
  if (config.max_steps > 0) {
    plan.steps = std::max(at.step, std::min(plan.steps, config.max_steps));
    const int64_t batches = at.epoch * steps_per_epoch + at.batch + plan.steps - at.step;
    plan.epochs = std::min(config.epochs, (batches + steps_per_epoch - 1) / steps_per_epoch);
  }
  // that are left
  int64_t dense = std::max<int64_t>(0, plan.dense_exchanges - at.step / plan.steps_per_exchange);
  int64_t steps = plan.steps - at.step, done = at.batch;
  for (int64_t epoch = at.epoch; epoch < plan.epochs && steps > 0; ++epoch, done = 0) {
    const int64_t trained = std::min(steps_per_epoch - done, steps);
    steps -= trained;
    const size_t stage = std::min(static_cast<size_t>(epoch), plan.stages.size() - 1);
    const int64_t exchanges = plan.exchanges(trained), whole = std::min(dense, exchanges);
    dense -= whole;
    plan.bytes_sent +=
        static_cast<double>(whole) * static_cast<double>(plan.dense_bytes_sent) +
        static_cast<double>(exchanges - whole) * static_cast<double>(plan.stages[stage].bytes_sent);
  }
  return plan;
}

Json to_json(const RunPlan& plan, const TrainConfig& config, const DataSplit& data,
             const Model& model) {
  const Sparsifier& sparsifier = plan.sgd.sparsifier;
  Json buckets = Json::array(), stages = Json::array();
  const double density = plan.stages.back().density;
  for (const Bucket& bucket : plan.sgd.buckets)
    buckets.push_back({{"elements", bucket.elements()},
                       {"entries", bucket.entries(density, plan.sgd.volume(density))},
                       {"packed", bucket.packed}});
  for (const RunPlan::Stage& stage : plan.stages)
    stages.push_back({{"density", stage.density},
                      {"entries", stage.entries},
                      {"bytes_sent", stage.bytes_sent},
                      {"seconds", stage.seconds}});
  return {{"model", config.model},
          {"parameters", model.arena().size()},
          {"classes", model.spec().classes},
          {"dataset", config.dataset},
          {"training_images", data.train->size()},
          {"validation_images", data.val->size()},
          {"ranks", plan.ranks},
          {"batch_size", config.batch_size},
          {"accumulate", config.accumulate},
          {"precision", word(*config.precision)},
          {"device", word(*config.device)},
          {"memory_bytes",
           {{"activations", plan.memory.workspace},
            {"weights_and_inputs", plan.memory.persistent},
            {"scratch", plan.memory.scratch},
            {"parameters_and_gradients", plan.parameter_bytes},
            {"optimizer", plan.sgd.optimizer_bytes},
            {"rank", plan.memory_bytes()}}},
          {"sparsifier", config.sparsifier},
          {"selector", sparsifier.selector},
          {"exchange", sparsifier.exchange},
          {"density", config.density},
          {"density_warmup", *config.density_warmup},
          {"buckets", buckets},
          {"stages", stages},
          {"epochs", plan.epochs},
          {"steps_per_epoch", plan.steps_per_epoch},
          {"steps", plan.steps},
          {"steps_done", plan.steps_done},
          {"steps_per_exchange", plan.steps_per_exchange},
          {"bytes_sent", static_cast<uint64_t>(plan.bytes_sent)}};
}

namespace {

std::string size_text(uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

const char* time_of(const TrainConfig& config) { return config.is_local() ? "exchange" : "step"; }

/// The entries that a rank sends in a step (with local steps: in an exchange) and the bytes that
/// all ranks send, at the density after the warm-up.
std::string volume_line(const TrainConfig& config, const RunPlan& plan, size_t d) {
  const auto& [density, k, bytes, seconds] = plan.stages.back();
  const char* const time = time_of(config);
  if (plan.sgd.sparsifier.selector.empty() && k != d)
    return fmt::format(
        "{}: {} floats of factors and short tensors for {} entries per {} and rank, {} sent per "
        "{} by all{}",
        config.sparsifier, k, d, time, size_text(bytes), time,
        plan.dense_exchanges == 0
            ? ""
            : fmt::format("; the first {} sum{} whole gradients, {} each",
                          plan.dense_exchanges == 1 ? time : counted(plan.dense_exchanges, time),
                          plan.dense_exchanges == 1 ? "s" : "", size_text(plan.dense_bytes_sent)));
  const Volume volume = plan.sgd.volume(density);
  const bool bounded = volume == Volume::exactly_k || volume == Volume::at_most_k;
  const size_t small = plan.sgd.packed_elements();
  const auto warmup = std::ssize(plan.stages) - 1;
  const std::string when = warmup == 0            ? ""
                           : warmup < plan.epochs ? fmt::format(" from epoch {} on", warmup + 1)
                                                  : fmt::format(" at density {}", density);
  return fmt::format("{}: {}{} of {} entries per {} and rank, {}{} sent per {} by all{}{}",
                     config.sparsifier, volume_text(volume, k),
                     small > 0 ? fmt::format(" and {} of small tensors", small) : "", d, time,
                     volume == Volume::at_most_k ? "at most " : "", size_text(bytes), time,
                     bounded ? "" : fmt::format(" for {} entries", k), when);
}

/// Lines on the densities of the epochs: those of the warm-up, a final one that is not reached, and
/// one that costs more bytes than dense SGD.
void report_densities(Console& console, const TrainConfig& config, const RunPlan& plan) {
  if (plan.sgd.sparsifier.selector.empty() || config.eval_only) return;
  const char* const time = time_of(config);
  const size_t last = plan.stages.size() - 1;
  std::string warmup, lower;
  RunPlan::Stage costly{.bytes_sent = plan.dense_bytes_sent};
  for (size_t i = 0; i <= last && std::cmp_less(i, plan.epochs); ++i) {
    const RunPlan::Stage& stage = plan.stages[i];
    if (stage.bytes_sent > costly.bytes_sent) costly = stage;
    if (i == last) continue;
    warmup += fmt::format("{} {} in epoch {} ({} entries, {} per {})", i > 0 ? "," : "",
                          stage.density, i + 1, stage.entries, size_text(stage.bytes_sent), time);
    if (stage.density < config.density && lower.empty())
      lower = fmt::format("density {} of epoch {} is below the density {} that follows",
                          stage.density, i + 1, config.density);
  }
  if (!warmup.empty()) console.paragraph("density warm-up:{}", warmup);
  if (!lower.empty()) console.paragraph("{}", lower);
  if (std::cmp_less_equal(plan.epochs, last) && plan.epochs > 0)
    console.paragraph(
        "density {} is never reached: the warm-up takes {}, the run has {}; --density-warmup none "
        "trains at this density from the start",
        config.density, counted(static_cast<int64_t>(last), "epoch"), plan.epochs);
  constexpr double kNoticeable = 1.01;
  const auto dense = static_cast<double>(plan.dense_bytes_sent);
  if (dense > 0 && static_cast<double>(costly.bytes_sent) > kNoticeable * dense)
    console.paragraph("density {} sends {} per {}, more than dense SGD with {}", costly.density,
                      size_text(costly.bytes_sent), time, size_text(plan.dense_bytes_sent));
}

/// The note that a selector has no effect at density 1.
void report_unused_selector(Console& console, const TrainConfig& config,
                            const std::string& selector) {
  if (config.density < 1 || selector.empty() || !config.density_of.empty()) return;
  const size_t warmup = config.density_warmup->size();
  console.paragraph(
      "density 1{}: all entries are sent; selector {} and its settings have no effect",
      warmup > 0 ? fmt::format(" from epoch {} on", warmup + 1) : "", selector);
}

void report_learning_rate(Console& console, const TrainConfig& config, int ranks) {
  const double factor = learning_rate_factor(config, ranks);
  if (!config.lr_reason.empty() || factor != 1)
    console.paragraph("learning rate {:g}{}{}{}", config.lr, config.lr_reason.empty() ? "" : ", ",
                      config.lr_reason,
                      factor == 1 ? ""
                                  : fmt::format(", times {:g} by --lr-scaling linear: {:g}", factor,
                                                factor * config.lr));
}

/// `epochs`: those that the run begins, which --max-steps may limit.
void report_warmup(Console& console, const TrainConfig& config, int64_t epochs) {
  if (config.warmup_epochs == 0) return;
  TrainConfig other;
  other.epochs = config.epochs;
  resolve_warmup(other);
  const bool cut = epochs < config.epochs && static_cast<double>(epochs) <= *config.warmup_epochs;
  console.paragraph("learning-rate warm-up: the first {:.3g} of {}{}{}", *config.warmup_epochs,
                    counted(config.epochs, "epoch"),
                    config.warmup_epochs == other.warmup_epochs ? " (auto)" : "",
                    cut ? "; --max-steps ends the run before its end" : "");
}

/// What a validation normalises with.
std::string statistics_text(const TrainConfig& config, size_t samples, int ranks) {
  const int64_t batches = BnStats(config.bn_stats).batches(config.batch_size, samples);
  if (batches > 0)
    return fmt::format("recomputed from {} training images", batches * config.batch_size);
  if (ranks == 1) return "running averages";
  return BnStats(config.bn_stats).of_rank_0 ? "those of rank 0" : "averaged over ranks";
}

std::string link_text(const CommOptions& comm, int ranks) {
  if (comm.link.empty() || ranks == 1) return "";
  return fmt::format(
      ", links of {} emulated{}", comm.link,
      ranks <= comm.ranks_per_node ? ", but one node has all ranks: messages take no time"
      : comm.ranks_per_node == 1   ? ""
                                 : fmt::format(" between nodes of {} ranks", comm.ranks_per_node));
}

/// The steps of an epoch and of the run, and what all ranks send in it.
void report_length(Console& console, const TrainConfig& config, const RunPlan& plan) {
  if (plan.steps_per_epoch == 0) return;
  console.paragraph(
      "{} steps per epoch, {} in all{}{}", plan.steps_per_epoch, plan.steps,
      plan.steps_done > 0 ? fmt::format(", {} of them left", plan.steps - plan.steps_done) : "",
      plan.ranks > 1 ? fmt::format(", about {} sent{}", bytes_text(plan.bytes_sent),
                                   plan.steps_done > 0 ? " in these" : "")
                     : "");
  const SgdConfig sgd = config.sgd();
  if (sgd.local_steps == 0) return;
  const int64_t exchanges = plan.exchanges_per_epoch();
  console.paragraph(
      "local SGD: an exchange every {}, outer rate {}, outer momentum {}; {} and {} sent per epoch",
      counted(sgd.local_steps, "step"), sgd.outer_lr, sgd.outer_momentum,
      counted(exchanges, "exchange"),
      bytes_text(static_cast<double>(plan.stages.back().bytes_sent) *
                 static_cast<double>(exchanges)));
}

}  // namespace

void report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                 const Model& model, const RunPlan& plan) {
  const size_t d = model.arena().size();
  if (!config.model_reason.empty()) console.paragraph("{}", config.model_reason);
  console.paragraph("{}: {} parameters, {} classes, images {}", config.model, d,
                    model.spec().classes, model.spec().image);
  if (const std::string note = size_note(config.model, model.spec().image); !note.empty())
    console.paragraph("{}", note);
  if (!config.eval_only) {
    report_learning_rate(console, config, plan.ranks);
    report_warmup(console, config, plan.epochs);
  }
  if (datasets().find(config.dataset).value.generated && config.data_dir.empty())
    console.paragraph("no --data-dir given: training on the generated data set {}", config.dataset);
  console.paragraph("data: {} ({} training images), validation on {} images: {}", config.dataset,
                    data.train->size(), data.val->size(), data.val_name);
  if (data.test) console.paragraph("test at the end on {}", data.test_name);
  if (!data.left_out.empty()) console.paragraph("data not read: {}", data.left_out);
  const std::string batch = config.accumulate == 1
                                ? fmt::format("{}", config.batch_size)
                                : fmt::format("{} x {}", config.accumulate, config.batch_size);
  console.paragraph("{} x {}, batch {} each, {} on {}{}", counted(plan.ranks, "rank"),
                    counted(config.threads_per_rank, "thread"), batch, word(*config.precision),
                    word(*config.device), link_text(config.comm, plan.ranks));
  if (const int64_t node = config.settings.integer(kNodeSetting);
      exchanges().find(plan.sgd.sparsifier.exchange).value.forms_nodes &&
      !config.comm.link.empty() && node > config.comm.ranks_per_node)
    console.paragraph(
        "a node of {} has {} ranks, one of the link {}: sums inside nodes take the link's time; "
        "with --ranks-per-node {} they do not",
        config.sparsifier, node, config.comm.ranks_per_node, node);
  if (!model.arena().statistics().empty())
    console.paragraph("batch-norm statistics for validation: {}",
                      statistics_text(config, data.train->size(), plan.ranks));

  console.paragraph(
      "memory per rank: {} activations{} + {} packed weights and inputs + {} scratch + "
      "{} parameters and gradients + {} optimizer = {}",
      size_text(plan.memory.workspace),
      config.recompute == Recompute::blocks ? " (recomputed inside blocks)" : "",
      size_text(plan.memory.persistent), size_text(plan.memory.scratch),
      size_text(plan.parameter_bytes), size_text(plan.sgd.optimizer_bytes),
      size_text(plan.memory_bytes()));
  const size_t needed = plan.memory_bytes() * static_cast<size_t>(ranks_here(plan.ranks));
  // ranks that are threads share one GPU
  if (config.device == Device::cuda && config.workers > 1)
    console.paragraph("the {} ranks share a GPU: they need {}; {} are free", plan.ranks,
                      size_text(needed), size_text(free_memory(Device::cuda)));
  if (const double free = available_memory();
      config.device == Device::cpu && static_cast<double>(needed) > free)
    console.paragraph(
        "the ranks of this machine need {}; {} are available: try fewer ranks, a "
        "smaller --batch-size, or --recompute blocks",
        size_text(needed), bytes_text(free));
  const double seconds = plan.stages.back().seconds;
  console.paragraph("{}{}", volume_line(config, plan, d),
                    plan.ranks == 1 || std::isnan(seconds)
                        ? ""
                        : fmt::format("; about {:.3g} ms on the link", 1e3 * seconds));
  report_densities(console, config, plan);
  report_unused_selector(console, config, plan.sgd.sparsifier.selector);
  report_length(console, config, plan);
}

std::vector<std::string> unused_options(Context& ctx, const TrainConfig& config,
                                        const DataSplit& data, const Model& model, int ranks) {
  const Sparsifier sparsifier = resolve_sparsifier(config.sgd(), config.settings);
  config.settings.forget_reads();
  read_settings(ctx, config.sgd(), config.settings, model.arena());
  const std::vector<std::string> unread = config.settings.unread({kNodeSetting, kSumCollective});
  const auto is_unread = [&](const char* key) { return std::ranges::count(unread, key) > 0; };
  const bool files = datasets().find(config.dataset).value.image_files;
  const auto& parameters = model.arena().parameters();
  const bool blocks = std::ranges::any_of(
      parameters, [](const Parameter& p) { return p.name.starts_with("layer1."); });
  const bool dense = sparsifier.selector.empty();
  const Shape& image = data.train->image;
  const std::string no_files = config.dataset + " has no image files",
                    no_blocks = config.model + " has no residual blocks",
                    selects_nothing = config.sparsifier + " selects no entries";
  // a mistake is refused; the others depend on what runs that are compared vary
  enum class Kind { note, mistake };
  struct Unused {
    const char* option;
    bool unused;
    std::string why;
    Kind kind = Kind::note;
  };
  const Unused all[] = {
      {"image-size", config.image_size > 0 && !files,
       fmt::format("images of {} are {} x {}", config.dataset, image[0], image[1]), Kind::mistake},
      {"colour-jitter", config.colour_jitter > 0 && !files, no_files, Kind::mistake},
      {"apply-exif-orientation", config.exif_orientation && !files, no_files, Kind::mistake},
      {"val-split", config.val_split.value_or(0) > 0 && !files, no_files, Kind::mistake},
      {"bad-images", config.bad_images == BadImages::skip && !files, no_files, Kind::mistake},
      {"shuffle", config.shuffle == Shuffle::shards && data.train->storage() == nullptr,
       "the training images are not all of those of a record file", Kind::mistake},
      {"ranks-per-node", config.comm.link.empty() && is_unread(kNodeSetting),
       fmt::format("no link is emulated (--link), and {} has no nodes", config.sparsifier),
       Kind::mistake},
      {"zero-init", config.zero_init && !blocks, no_blocks},
      {"recompute", config.recompute == Recompute::blocks && !blocks, no_blocks},
      {"density", dense, selects_nothing},
      {"density-warmup", dense, selects_nothing},
      {"no-error-feedback", config.no_error_feedback && !keeps_residual(sparsifier),
       config.sparsifier + " keeps no residual"},
      {"bucket-mib", sparsifier.scope != Scope::layer, "--scope is not layer"},
      {"lr-milestones", config.lr_schedule != LrSchedule::step,
       std::string("--lr-schedule is ") + word(config.lr_schedule)},
      {"warmup-from", config.warmup_epochs == 0, "there is no warm-up"},
      {"deterministic", config.deterministic && config.device == Device::cpu,
       "the CPU is always deterministic"},
      {"bn-stats", model.arena().statistics().empty(), config.model + " has no batch norm"},
      {"decay-all", config.decay_all && config.weight_decay == 0, "--weight-decay is 0"},
      {"keep-best", config.keep_best && !config.eval_every, "--eval-every is never"},
      {"link", ranks == 1, "one rank sends no messages"},
      {"allreduce", ranks == 1 || is_unread(kSumCollective),
       ranks == 1 ? "one rank sends no messages" : config.sparsifier + " uses no dense collective"},
      {"comm-timeout", ranks == 1, "one rank waits for no other"},
      {"measure-wait", config.measure_wait && ranks == 1, "one rank waits for no other"}};
  std::vector<std::string> notes;
  const auto add = [&](const std::string& option, const std::string& why, bool mistake) {
    // a file, such as a recipe, and a sweep may serve other runs, too
    check(!mistake || !config.cell.empty(), "[options] {} has no effect: {}", option, why);
    notes.push_back(fmt::format("--{} has no effect: {}", option, why));
  };
  for (const auto& [option, unused, why, kind] : all)
    if (unused && config.is_given(option))
      add(option, why, kind == Kind::mistake && config.is_flag(option));
  if (const int64_t before = config.ranks_before; before > 0 && before != ranks)
    notes.push_back(
        fmt::format("the run of this configuration had {} ranks, this one has {}", before, ranks));
  if (!config.eval_only)
    for (const std::string& key : config.settings.unread(config.flags))
      if (key != kSumCollective || config.is_flag(key) || !config.is_flag("allreduce"))
        add("set " + key, "no part of this run reads it", config.is_flag(key));
  return notes;
}

void rethrow_with_plan(const Communicator& comm, const char* purpose, size_t bytes,
                       const char* reason) {
  const std::string planned = bytes > 0
                                  ? fmt::format("{} planned for each of {} ranks; ",
                                                bytes_text(static_cast<double>(bytes)), comm.size())
                                  : "";
  fail<OutOfMemory>("[train] rank {}: no memory for {}; {}{}", comm.rank(), purpose, planned,
                    reason);
}

}  // namespace tw
