#include "apps/train/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/resolve.h"
#include "apps/train/run_folder.h"
#include "apps/train/schedule.h"
#include "comm/collectives/collectives.h"
#include "data/dataset.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "models/model.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

constexpr std::string_view kRecompute = "recompute";

std::string learning_rate_help() {
  std::string text = "learning rate";
  for (const auto& [model, entry] : models().entries())
    if (entry.value.rate) text += fmt::format("; {}: {}", model, entry.value.rate->value);
  return text + "; for image files and --pretrained, that times --batch-size / 256 below 256";
}

void check_combinations(const TrainConfig& c) {
  models().find(c.model);
  resolve_sparsifier(c.sgd(), c.settings);
  const bool generated = datasets().find(c.dataset).value.generated;
  check(!generated || !c.is_given("data-dir"),
        "[options] data-dir is {}, but the images of {} are generated; THINWIRE_CACHE names the "
        "folder that keeps them",
        c.data_dir, c.dataset);
  check(!generated || c.test_dir.empty(),
        "[options] test-dir is {}, but the images of {} are generated", c.test_dir, c.dataset);
  allreduces().find(c.settings.text(kSumCollective));
  check(!c.eval_only || !c.pretrained.empty() || !c.resume.empty(),
        "[options] eval-only needs weights: give --pretrained or --resume");
  check(!c.eval_only || !c.quiet || !c.log.empty(),
        "[options] eval-only prints what it finds; it excludes quiet without --log");
  check(c.seeds.empty() || !c.is_flag("seed"), "[options] seeds has the seeds; it excludes seed");
  check(!c.eval_only || c.eval_every.has_value(),
        "[options] eval-only validates; it excludes --eval-every never");
  check(c.val_size == 0 || c.val_split.value_or(0) == 0,
        "[options] val-size and val-split both hold out images; give one of them");
  check(c.pretrained.empty() || !c.resumes_path(),
        "[options] pretrained and resume both load weights; give one of them");
  check(!c.reset_head || !c.pretrained.empty() || !c.resume.empty(),
        "[options] reset-head needs --pretrained, whose last layer it leaves out");
  check(!c.is_flag("reset-head") || !c.pretrained.empty() || c.resumes_last(),
        "[options] reset-head is for the weights of --pretrained; a resumed run keeps its layers");
  check(c.class_map.empty() || !c.pretrained.empty() || !c.resume.empty(),
        "[options] class-map needs the weights of --pretrained or --resume");
  check(c.class_map.empty() || !c.reset_head || c.pretrained.empty(),
        "[options] class-map keeps the last layer; it excludes reset-head");
  for (const auto& [name, every] :
       {std::pair("analyze-every", c.analyze_every), {"save-gradients", c.save_gradients}}) {
    check(!c.overlap || every == 0,
          "[options] {} reads gradients before any exchange; it excludes overlap", name);
    check(!c.is_local() || every == 0,
          "[options] {} adds the residual to each gradient; it excludes local-steps", name);
  }
  check(!c.overlap || !c.measure_wait,
        "[options] measure-wait puts a barrier before every exchange; it excludes overlap");
  check(!c.nesterov || c.momentum > 0, "[options] nesterov needs a momentum above 0");
  check(c.momentum_correction != Switch::on || c.momentum > 0,
        "[options] momentum-correction needs a momentum above 0");
  check(c.momentum_correction != Switch::on || !c.is_local() || c.outer_momentum > 0,
        "[options] with local steps, momentum-correction needs an outer-momentum above 0");
  check(c.residual_decay == 1 || !c.no_error_feedback,
        "[options] residual-decay has no effect with no-error-feedback, which keeps no residual");
  const std::string missing = c.device == Device::cuda ? what_is_missing(Device::cuda) : "";
  check(missing.empty(), "[options] device is cuda, but {}; use --device cpu", missing);
  check(c.precision != Precision::tf32 || resolve_device(c.device) == Device::cuda,
        "[options] precision is tf32, which only a GPU has; expected auto, f32 or bf16");
  check_transport(c.comm, c.device);
  check(!c.overlap || !c.comm.has_slow_ranks(),
        "[options] link has slow ranks, which wait between backward and the exchange; it excludes "
        "overlap");
  check(!c.plan_json || (c.dry_run && c.cell.empty() && c.seeds.empty()),
        "[options] json prints the plan of one run; it needs dry-run and excludes seeds and a "
        "sweep");
  check(c.name.find('/') == std::string::npos && c.name != "." && c.name != ".." &&
            std::ranges::none_of(c.name, [](unsigned char x) { return x < 0x20 || x == 0x7f; }),
        "[options] name is {}; expected the name of a folder below --output-dir", c.name);
}

}  // namespace

BnStats::BnStats(const std::string& value) : of_rank_0(value == "local") {
  if (value == "average" || of_rank_0) return;
  const std::string prefix = fmt::format("{}=", kRecompute);
  if (value == kRecompute) images = kImages;
  if (value.starts_with(prefix))
    images = number_in<int64_t>(value.substr(prefix.size())).value_or(0);
  check(images > 0, "[options] bn-stats is {}; expected one of: average, local, {}, {}=IMAGES",
        value, kRecompute, kRecompute);
}

int64_t BnStats::batches(int64_t batch, size_t samples) const {
  const int64_t taken = std::min(images, static_cast<int64_t>(samples)),
                most = static_cast<int64_t>(samples) / batch;
  check(taken == 0 || most > 0,
        "[options] bn-stats is {}={}, but a batch of {} is more than the {} training images",
        kRecompute, images, batch, samples);
  return std::min((taken + batch - 1) / batch, most);
}

OptionTable TrainConfig::table() {
  OptionTable t;
  constexpr double kMostSeed = 4294967295;
  t.group("Model and data");
  t.add("model", model, "network (see --list); without it, image files decide, by number and size",
        {.suggestions = models().names(), .effect = Effect::essential});
  t.add("dataset", dataset, "data set (see --list); auto: the one in --data-dir, without it shapes",
        {.suggestions = datasets().names(), .effect = Effect::essential});
  t.add("data-dir", data_dir, "folder of the data set", {.effect = Effect::none, .traits = kLocal});
  t.add("val-size", val_size, "hold out N training images for validation",
        {.effect = Effect::essential});
  t.add("val-split", val_split,
        "hold out this share of each class, of image files; auto: 0.1 of class folders alone",
        {.most = DataConfig::kMostValSplit, .none = "auto", .effect = Effect::essential});
  t.add("test-dir", test_dir,
        "folder of other images, whose accuracy is measured once, at the end, for summary.json",
        {.effect = Effect::none, .traits = kLocal});
  t.add("classes", classes, "outputs of the network; 0: the number of classes of the data");
  t.add("zero-init", zero_init, "zero the last batch-norm scale of each residual block");
  t.add("pretrained", pretrained,
        "weights to start from: a run, a checkpoint or a safetensors file",
        {.effect = Effect::none, .traits = kLocal});
  t.add("reset-head", reset_head,
        "with --pretrained: leave the last layer as initialised, e.g. for other classes",
        {.effect = Effect::none});
  t.add("class-map", class_map,
        "labels of the data as outputs of the weights: names, by the names of the classes, or "
        "DATA=WEIGHTS,... for classes with other names in the weights",
        {.effect = Effect::none});
  t.add(
      "freeze", freeze,
      "tensors that are not trained: names with *, or beginnings like layer1, separated by commas");
  t.add("batch-size", batch_size, "images per rank and micro-batch", {.least = 1});
  t.add("accumulate", accumulate, "micro-batches per step and rank (gradient accumulation)",
        {.least = 1, .most = 65536});
  t.add("loader-threads", loader_threads, "threads per rank that prepare batches",
        {.most = 256, .effect = Effect::none});
  t.add("image-size", image_size,
        "side of image files after the crop, in pixels; 0: 224, or by the images without --model",
        {.most = 4096});
  t.add("colour-jitter", colour_jitter,
        "vary brightness, contrast and saturation of image files by up to this fraction",
        {.most = 1});
  t.add("apply-exif-orientation", exif_orientation,
        "turn image files upright by their EXIF orientation, which is else ignored");
  t.add("bad-images", bad_images, "end the run at a damaged image file, or skip it");
  t.add("shuffle", shuffle,
        "over all images, or over shards and within them (record files on slow disks)");

  t.group("Sparsifier", Effect::experiment);
  t.add("sparsifier", sparsifier, "synchronous SGD algorithm (see --list)",
        {.suggestions = sparsifiers().names()});
  t.add("density", density, "fraction of the gradient entries that a step sends",
        {.most = 1, .excludes_least = true});
  t.add(
      "density-warmup", density_warmup,
      fmt::format("densities of the first epochs, one per epoch; none; auto: those of {} that are "
                  "above --density",
                  fmt::join(kWarmupDensities, ",")),
      {.most = 1, .excludes_least = true, .none = "auto", .empty_list = "none"});
  t.add("selector", selector, "replaces the sparsifier's selector (see --list)",
        {.suggestions = selectors().names()});
  t.add("exchange", exchange, "replaces the sparsifier's exchange (see --list)",
        {.suggestions = exchanges().names()});
  t.add("scope", scope, "select from the whole gradient or from each tensor (layer)",
        {.none = "auto"});
  t.add("momentum-correction", momentum_correction,
        "momentum on each rank before the selection, not after the exchange; auto: where its "
        "authors do so",
        {.none = "auto"});
  t.add("bucket-mib", bucket_mib,
        "with --scope layer: neighbouring tensors form buckets of at least this size",
        {.most = 1e6, .effect = Effect::weights});
  t.add("overlap", overlap, "with --scope layer: exchange during backward",
        {.effect = Effect::none});
  t.add("measure-wait", measure_wait,
        "barrier before every exchange, so that sec_wait measures the wait for stragglers",
        {.effect = Effect::none});
  t.add_settings(settings);
  t.add_short_form("allreduce", kSumCollective, "dense collective (see --list)",
                   {.suggestions = allreduces().names()});
  t.add("density-of", density_of,
        "densities of tensors, such as layer1.*=0.01,fc=1; needs --scope layer");
  t.add("no-error-feedback", no_error_feedback, "drop entries that were not sent");
  t.add("residual-decay", residual_decay,
        "multiply the residual by this before the gradient is added", {.most = 1});
  t.add("ef21", ef21, "EF21 in place of error feedback: ranks send how their gradients change",
        {.effect = Effect::essential});

  t.group("Optimisation");
  t.add("epochs", epochs, "passes over the training images");
  t.add("max-steps", max_steps, "stop after this many steps; 0: no limit",
        {.effect = Effect::none});
  t.add("lr", lr, learning_rate_help());
  t.add("lr-scaling", lr_scaling, "linear: times ranks and micro-batches (Goyal et al. 2017)");
  t.add("lr-schedule", lr_schedule, "how the learning rate decays");
  t.add("lr-milestones", lr_milestones, "epochs at which `step` multiplies the rate by 0.1");
  t.add("warmup-epochs", warmup_epochs,
        fmt::format("epochs of linear learning-rate warm-up, raised every step; auto: {}, at most "
                    "{} of --epochs",
                    std::size(kWarmupDensities), kMostWarmup),
        {.none = "auto"});
  t.add("warmup-from", warmup_from, "fraction of the learning rate at which warm-up starts",
        {.most = 1});
  t.add("momentum", momentum, "momentum", {.most = 1});
  t.add("nesterov", nesterov, "Nesterov momentum");
  t.add("weight-decay", weight_decay, "L2 penalty; not on batch norm and biases");
  t.add("decay-all", decay_all, "weight decay also on batch norm and biases");
  t.add("label-smoothing", label_smoothing, "label smoothing", {.most = 1});
  t.add("local-steps", local_steps,
        "steps of local SGD between exchanges; 1: none, unless an outer option is given",
        {.least = 1, .effect = Effect::experiment});
  t.add("outer-lr", outer_lr,
        "local SGD: rate at which the mean of the ranks' changes is applied; 0: 1",
        {.effect = Effect::experiment});
  t.add("outer-momentum", outer_momentum, "local SGD: Nesterov momentum of that mean",
        {.most = 0.999, .effect = Effect::experiment});
  t.add("seed", seed, "seed of all random numbers",
        {.most = kMostSeed, .effect = Effect::essential});
  t.add("seeds", seeds,
        "one run per seed, e.g. 1,2,3; print mean and standard deviation at the end",
        {.most = kMostSeed, .traits = kUnsaved | kUnswept});

  t.group("Machine", Effect::none);
  t.add("precision", precision, "arithmetic; auto: bf16 where the hardware has it",
        {.none = "auto", .effect = Effect::weights});
  t.add("device", device, "where to compute; auto: the GPU if there is one", {.none = "auto"});
  t.add("deterministic", deterministic, "bitwise-reproducible GPU kernels, no autotuning",
        {.effect = Effect::weights});
  t.add("workers", workers, "ranks, as threads of this process; 0: 1, or mpirun's -n",
        {.most = 4096});
  t.add("threads-per-rank", threads_per_rank,
        "CPU threads of a rank; 0: cores / ranks; may change the bits",
        {.most = 4096, .effect = Effect::weights});
  comm.add_to(t);
  t.add("recompute", recompute,
        "blocks: recompute activations inside residual blocks in backward to save memory");

  t.group("Run", Effect::none);
  t.add("output-dir", output_dir, "parent of the run folders", {.traits = kUnswept | kLocal});
  t.add("name", name, "run folder; default: from model, sparsifier and seed",
        {.traits = kUnswept | kLocal});
  t.add("eval-every", eval_every,
        "epochs between validations; 0: only after the last; never: no validation",
        {.none = "never"});
  t.add("checkpoint-every", checkpoint_every, "epochs between checkpoints; 0: only after the last");
  t.add("checkpoint-steps", checkpoint_steps, "steps between checkpoints; 0: none");
  t.add("checkpoint-minutes", checkpoint_minutes,
        "most minutes of training between checkpoints; 0: no limit", {.most = 1e6});
  t.add("keep-checkpoints", keep_checkpoints, "how many checkpoints stay; 0: all");
  t.add("keep-best", keep_best,
        "also keep the checkpoint of the highest validation accuracy, as checkpoints/best-N");
  t.add("analyze-every", analyze_every,
        "steps between measurements of rank 0's gradient and residual distribution; 0: none");
  t.add("save-gradients", save_gradients,
        "steps between files gradients/step-N-rank-R.safetensors of each rank, for `analyze "
        "compressors`: its gradient g, before clipping and momentum, and u, g and the residual; "
        "0: none");
  t.add("tensorboard", tensorboard,
        "write steps, epochs and the histograms of --analyze-every for TensorBoard, too");
  t.add("quiet", quiet, "print errors only; run.log has the lines", {.traits = kUnsaved});
  t.add("log", log, "file to which the lines of the console are appended, beside run.log",
        {.traits = kUnsaved});
  t.add("folders", folders,
        "file to which the folder of each run is appended as a line, also of one that is finished",
        {.traits = kUnsaved | kUnswept | kLocal});
  t.add("bn-stats", bn_stats,
        fmt::format("batch-norm statistics for validation: running ones, average of the ranks or "
                    "local (rank 0's), or recompute=N: anew from N training images (default {})",
                    BnStats::kImages),
        {.suggestions = {"average", "local", "recompute"}, .effect = Effect::weights});
  t.add("resume", resume,
        "continue a run folder or checkpoint, with --name in a new folder; auto: the last of this "
        "name",
        {.traits = kUnsaved | kUnswept | kLocal});
  t.add("eval-only", eval_only, "validate --pretrained or --resume without training",
        {.traits = kUnsaved | kUnswept});
  t.add("dry-run", dry_run, "print plan, memory and bytes per step without training",
        {.traits = kUnsaved | kUnswept});
  t.add("json", plan_json, "with --dry-run: print the plan as one JSON document",
        {.traits = kUnsaved | kUnswept});
  t.add("list", list, "print everything registered, with its settings",
        {.traits = kUnsaved | kUnswept});
  t.add("config", config,
        "JSON file of options; flags override it; lists under \"sweep\" make a run for each "
        "combination",
        {.traits = kUnsaved | kUnswept | kLocal});
  return t;
}

Json TrainConfig::json() {
  Json object = table().json(kUnsaved);
  object["set"] = settings.values();
  return object;
}

bool TrainConfig::is_flag(const std::string& option) const {
  return std::ranges::find(flags, option) != flags.end();
}

bool TrainConfig::is_given(const std::string& option) const {
  return is_flag(option) || std::ranges::find(changed, option) != changed.end();
}

/// SyncSgd::update, LocalSgd::step_alone and CapturedStep make the parameters of ops::sgd_update of
/// it, each its own.
SgdConfig TrainConfig::sgd() const {
  return {.sparsifier = sparsifier,
          .momentum = momentum,
          .weight_decay = weight_decay,
          .nesterov = nesterov,
          .error_feedback = !no_error_feedback,
          .residual_decay = residual_decay,
          .ef21 = ef21,
          .density_of = density_of,
          .selector = selector,
          .exchange = exchange,
          .scope = scope,
          .momentum_before =
              momentum_correction ? std::optional(momentum_correction == Switch::on) : std::nullopt,
          .bucket_bytes = static_cast<size_t>(bucket_mib * 0x1p20),
          .overlap = overlap,
          .seed = static_cast<uint64_t>(seed),
          .local_steps = is_local() ? local_steps : 0,
          .outer_lr = outer_lr > 0 ? outer_lr : 1,
          .outer_momentum = outer_momentum};
}

bool TrainConfig::forms_nodes() const {
  return exchanges().find(resolve_sparsifier(sgd(), settings).exchange).value.forms_nodes;
}

namespace {

/// The options as one level, those of --set by their dotted names.
Json flattened(Json config) {
  const Json settings = config.value("set", Json::object());
  config.erase("set");
  config.update(settings);
  return config;
}

}  // namespace

std::vector<Difference> differences(const Json& then, TrainConfig config) {
  const Json now = flattened(config.json());
  Json before = flattened(TrainConfig{}.json());  // of an option that an older version lacks
  before.update(flattened(then));
  const OptionTable table = config.table();
  std::vector<Difference> found;
  for (const auto& [key, value] : now.items())
    if (const Effect effect = table.effect_of(key);
        effect != Effect::none && before.value(key, Json()) != value)
      found.push_back({key, before.value(key, Json()), value, effect});
  return found;
}

void resolve(TrainConfig& config) {
  if (config.dataset == "auto")
    config.dataset = config.data_dir.empty() ? kShapes : dataset_of(config.data_dir);
  choose_model(config);
  if (!config.lr_given) choose_rate(config);
  resolve_warmup(config);
  check_combinations(config);
  if (const BnStats stats(config.bn_stats); stats.images > 0)
    config.bn_stats = fmt::format("{}={}", kRecompute, stats.images);
  if (!config.pretrained.empty())
    config.pretrained = weights_file(config.pretrained, "weights").string();
}

void check_resume(const TrainConfig& config) {
  if (config.resumes_path()) checkpoint_to_resume(config.resume);
}

std::string name_of_seed(const std::string& name, int64_t seed) {
  return fmt::format("{}-s{}", name, seed);
}

}  // namespace tw
