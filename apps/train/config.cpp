#include "apps/train/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/resolve.h"
#include "apps/train/evaluate.h"
#include "apps/train/run_folder.h"
#include "apps/train/schedule.h"
#include "comm/collectives/collectives.h"
#include "data/dataset.h"
#include "engine/core/error.h"
#include "models/model.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

std::string learning_rate_help() {
  std::string text = "learning rate";
  for (const auto& [model, entry] : models().entries())
    if (entry.value.rate) text += fmt::format("; {}: {}", model, entry.value.rate->value);
  return text;
}

void check_combinations(const TrainConfig& c) {
  models().find(c.model);
  resolve_sparsifier(c.sgd(), c.settings);
  check(!datasets().find(c.dataset).value.generated || !c.is_given("data-dir"),
        "[options] data-dir is {}, but the images of {} are generated; THINWIRE_CACHE names the "
        "folder that keeps them",
        c.data_dir, c.dataset);
  allreduces().find(c.settings.text(kSumCollective));
  check(!c.eval_only || !c.pretrained.empty() || !c.resume.empty(),
        "[options] eval-only needs weights: give --pretrained or --resume");
  check(!c.eval_only || c.eval_every != kNever,
        "[options] eval-only validates; it excludes --eval-every never");
  check(c.pretrained.empty() || c.resume.empty() || c.resume == "auto",
        "[options] pretrained and resume both load weights; give one of them");
  check(!c.reset_head || !c.pretrained.empty() || !c.resume.empty(),
        "[options] reset-head needs --pretrained, whose last layer it leaves out");
  check(!c.is_flag("reset-head") || !c.pretrained.empty() || c.resume == "auto",
        "[options] reset-head is for the weights of --pretrained; a resumed run keeps its layers");
  check(c.class_map.empty() || !c.pretrained.empty() || !c.resume.empty(),
        "[options] class-map needs the weights of --pretrained or --resume");
  check(c.class_map.empty() || !c.reset_head || c.pretrained.empty(),
        "[options] class-map keeps the last layer; it excludes reset-head");
  check(!c.overlap || c.analyze_every == 0,
        "[options] analyze-every reads gradients before any exchange; it excludes overlap");
  check(!c.overlap || !c.measure_wait,
        "[options] measure-wait puts a barrier before every exchange; it excludes overlap");
  check(!c.nesterov || c.momentum > 0, "[options] nesterov needs a momentum above 0");
  check(c.momentum_correction != "on" || c.momentum > 0,
        "[options] momentum-correction needs a momentum above 0");
  check(c.momentum_correction != "on" || !c.is_local() || c.outer_momentum > 0,
        "[options] with local steps, momentum-correction needs an outer-momentum above 0");
  check(c.residual_decay == 1 || !c.no_error_feedback,
        "[options] residual-decay has no effect with no-error-feedback, which keeps no residual");
  check(!c.is_local() || c.analyze_every == 0,
        "[options] analyze-every adds the residual to each gradient; it excludes local-steps");
  const std::string missing = c.device == "cuda" ? what_is_missing(Device::cuda) : "";
  check(missing.empty(), "[options] device is cuda, but {}; use --device cpu", missing);
  check(c.precision != "tf32" || resolve_device(c.device) == Device::cuda,
        "[options] precision is tf32, which only a GPU has; expected auto, f32 or bf16");
  check_transport(c.comm, c.device);
  if (!c.comm.link.empty()) parse_link(c.comm.link);
  check(c.name.find('/') == std::string::npos && c.name != "." && c.name != ".." &&
            std::ranges::none_of(c.name, [](unsigned char x) { return x < 0x20 || x == 0x7f; }),
        "[options] name is {}; expected the name of a folder below --output-dir", c.name);
}

}  // namespace

OptionTable TrainConfig::table() {
  OptionTable t;
  const std::string data = "Model and data", sparsifier_group = "Sparsifier", sgd = "Optimisation",
                    machine = "Machine", run = "Run";
  constexpr double kMostSeed = 4294967295;
  t.add(data, "model", model, "network (see --list)");
  t.suggest(models().names());
  t.effect(Effect::essential);
  t.add(data, "dataset", dataset,
        "data set (see --list); auto: the one in --data-dir, without it shapes");
  t.suggest(datasets().names());
  t.effect(Effect::essential);
  t.add(data, "data-dir", data_dir, "folder of the data set");
  t.effect(Effect::none);
  t.add(data, "val-size", val_size, "hold out the last N training images for validation");
  t.effect(Effect::essential);
  t.add(data, "classes", classes, "outputs of the network; 0: the number of classes of the data");
  t.add(data, "zero-init", zero_init, "zero the last batch-norm scale of each residual block");
  t.add(data, "pretrained", pretrained,
        "weights to start from: a run, a checkpoint or a safetensors file");
  t.effect(Effect::none);
  t.add(data, "reset-head", reset_head,
        "with --pretrained: leave the last layer as initialised, e.g. for other classes");
  t.effect(Effect::none);
  t.add(data, "class-map", class_map,
        "labels of the data as outputs of the weights: names, by the names of the classes, or "
        "DATA=WEIGHTS,... for classes with other names in the weights");
  t.effect(Effect::none);
  t.add(
      data, "freeze", freeze,
      "tensors that are not trained: names with *, or beginnings like layer1, separated by commas");
  t.add(data, "batch-size", batch_size, "images per rank and micro-batch");
  t.range(1);
  t.add(data, "accumulate", accumulate, "micro-batches per step and rank (gradient accumulation)");
  t.range(1, 65536);
  t.add(data, "loader-threads", loader_threads, "threads per rank that prepare batches");
  t.range(0, 256);
  t.effect(Effect::none);
  t.add(data, "image-size", image_size, "side of JPEG images after the crop, in pixels; 0: 224");
  t.range(0, 4096);
  t.add(data, "colour-jitter", colour_jitter,
        "vary brightness, contrast and saturation of JPEG images by up to this fraction");
  t.range(0, 1);
  t.add(data, "bad-images", bad_images, "end the run at a damaged JPEG image, or skip it");
  t.choices({"fail", "skip"});
  t.add(data, "shuffle", shuffle,
        "over all images, or over shards and within them (record files on slow disks)");
  t.choices({"full", "shards"});

  t.add(sparsifier_group, "sparsifier", sparsifier, "synchronous SGD algorithm (see --list)");
  t.suggest(sparsifiers().names());
  t.add(sparsifier_group, "density", density, "fraction of the gradient entries that a step sends");
  t.above(0, 1);
  t.add(
      sparsifier_group, "density-warmup", density_warmup,
      "densities of the first epochs, one per epoch; none; auto: those of 0.015625,0.004 that are "
      "above --density");
  t.above(0, 1);
  t.word("auto", "[-1]");
  t.word("none", "[]");
  t.add(sparsifier_group, "selector", selector, "replaces the sparsifier's selector (see --list)");
  t.suggest(selectors().names());
  t.add(sparsifier_group, "exchange", exchange, "replaces the sparsifier's exchange (see --list)");
  t.suggest(exchanges().names());
  t.add(sparsifier_group, "scope", scope,
        "select from the whole gradient or from each tensor (layer)");
  t.choices({"auto", "model", "layer"});
  t.add(sparsifier_group, "momentum-correction", momentum_correction,
        "momentum on each rank before the selection, not after the exchange; auto: for dgc");
  t.choices({"auto", "on", "off"});
  t.add(sparsifier_group, "bucket-mib", bucket_mib,
        "with --scope layer: neighbouring tensors form buckets of at least this size");
  t.range(0, 1e6);
  t.add(sparsifier_group, "overlap", overlap, "with --scope layer: exchange during backward");
  t.effect(Effect::none);
  t.add(sparsifier_group, "measure-wait", measure_wait,
        "barrier before every exchange, so that sec_wait measures the wait for stragglers");
  t.effect(Effect::none);
  t.add(sparsifier_group, "allreduce", allreduce, "dense collective (see --list)");
  t.suggest(allreduces().names());
  t.add(sparsifier_group, "no-error-feedback", no_error_feedback,
        "drop entries that were not sent");
  t.add(sparsifier_group, "residual-decay", residual_decay,
        "multiply the residual by this before the gradient is added");
  t.range(0, 1);
  t.add_settings(sparsifier_group, settings);

  t.add(sgd, "epochs", epochs, "passes over the training images");
  t.add(sgd, "max-steps", max_steps, "stop after this many steps; 0: no limit");
  t.effect(Effect::none);
  t.add(sgd, "lr", lr, learning_rate_help());
  t.add(sgd, "lr-scaling", lr_scaling, "linear: times ranks and micro-batches (Goyal et al. 2017)");
  t.choices({"none", "linear"});
  t.add(sgd, "lr-schedule", lr_schedule, "how the learning rate decays");
  t.choices({"step", "cosine", "constant"});
  t.add(sgd, "lr-milestones", lr_milestones, "epochs at which `step` multiplies the rate by 0.1");
  t.add(sgd, "warmup-epochs", warmup_epochs,
        "epochs of linear learning-rate warm-up, raised every step; auto: 2, at most a fifth of "
        "--epochs");
  t.word("auto", "-1");
  t.add(sgd, "warmup-from", warmup_from, "fraction of the learning rate at which warm-up starts");
  t.range(0, 1);
  t.add(sgd, "momentum", momentum, "momentum");
  t.range(0, 1);
  t.add(sgd, "nesterov", nesterov, "Nesterov momentum");
  t.add(sgd, "weight-decay", weight_decay, "L2 penalty; not on batch norm and biases");
  t.add(sgd, "decay-all", decay_all, "weight decay also on batch norm and biases");
  t.add(sgd, "label-smoothing", label_smoothing, "label smoothing");
  t.range(0, 1);
  t.add(sgd, "local-steps", local_steps,
        "steps of local SGD between exchanges; 1: none, unless an outer option is given");
  t.range(1);
  t.add(sgd, "outer-lr", outer_lr,
        "local SGD: rate at which the mean of the ranks' changes is applied; 0: 1");
  t.add(sgd, "outer-momentum", outer_momentum, "local SGD: Nesterov momentum of that mean");
  t.range(0, 0.999);
  t.add(sgd, "seed", seed, "seed of all random numbers");
  t.range(0, kMostSeed);
  t.effect(Effect::essential);
  t.add(sgd, "seeds", seeds,
        "one run per seed, e.g. 1,2,3; print mean and standard deviation at the end");
  t.range(0, kMostSeed);

  t.add(machine, "precision", precision, "arithmetic; auto: bf16 where the hardware has it");
  t.choices({"auto", "f32", "tf32", "bf16"});
  t.add(machine, "device", device, "where to compute; auto: the GPU if there is one");
  t.choices({"auto", "cpu", "cuda"});
  t.effect(Effect::none);
  t.add(machine, "deterministic", deterministic, "bitwise-reproducible GPU kernels, no autotuning");
  t.add(machine, "workers", workers, "ranks, as threads of this process; 0: 1, or mpirun's -n");
  t.range(0, 4096);
  t.effect(Effect::none);
  t.add(machine, "threads-per-rank", threads_per_rank,
        "CPU threads of a rank; 0: cores / ranks; may change the bits");
  t.alias("threads");
  t.range(0, 4096);
  comm.add_to(t, machine);
  t.add(machine, "recompute", recompute,
        "blocks: recompute activations inside residual blocks in backward to save memory");
  t.choices({"none", "blocks"});
  t.effect(Effect::none);

  t.add(run, "output-dir", output_dir, "parent of the run folders");
  t.effect(Effect::none);
  t.add(run, "name", name, "run folder; default: from model, sparsifier, ranks and seed");
  t.effect(Effect::none);
  t.add(run, "eval-every", eval_every,
        "epochs between validations; 0: only after the last; never: no validation");
  t.word("never", "-1");
  t.effect(Effect::none);
  t.add(run, "checkpoint-every", checkpoint_every,
        "epochs between checkpoints; 0: only after the last");
  t.effect(Effect::none);
  t.add(run, "checkpoint-steps", checkpoint_steps, "steps between checkpoints; 0: none");
  t.effect(Effect::none);
  t.add(run, "keep-checkpoints", keep_checkpoints, "how many checkpoints stay; 0: all");
  t.effect(Effect::none);
  t.add(run, "keep-best", keep_best,
        "also keep the checkpoint of the highest validation accuracy, as checkpoints/best-N");
  t.effect(Effect::none);
  t.add(run, "analyze-every", analyze_every,
        "steps between measurements of rank 0's gradient and residual distribution; 0: none");
  t.effect(Effect::none);
  t.add(run, "tensorboard", tensorboard,
        "write steps, epochs and the histograms of --analyze-every for TensorBoard, too");
  t.effect(Effect::none);
  t.add(run, "quiet", quiet, "print errors only; run.log has the lines");
  t.add(run, "log", log, "file to which the lines of the console are appended, beside run.log");
  t.add(run, "bn-stats", bn_stats,
        fmt::format("batch-norm statistics for validation: running ones, average of the ranks or "
                    "local (rank 0's), or recompute=N: anew from N training images (default {})",
                    kImagesToRecompute));
  t.suggest({"average", "local", "recompute"});
  t.add(run, "resume", resume,
        "continue a run folder or checkpoint, with --name in a new folder; auto: the last of this "
        "name");
  t.add(run, "eval-only", eval_only, "validate --pretrained or --resume without training");
  t.add(run, "dry-run", dry_run, "print plan, memory and bytes per step without training");
  t.add(run, "list", list, "print everything registered, with its settings");
  t.add(run, "config", config,
        "JSON file of options; flags override it; lists under \"sweep\" make a run for each "
        "combination");
  return t;
}

Json TrainConfig::json() {
  Json object = table().json();
  object["set"] = settings.values();
  // options of one call, and --allreduce, which is a setting
  for (const char* key :
       {"dry_run", "eval_only", "list", "config", "resume", "seeds", "allreduce", "quiet", "log"})
    object.erase(key);
  return object;
}

bool TrainConfig::is_flag(const std::string& option) const {
  return std::ranges::find(flags, option) != flags.end();
}

bool TrainConfig::is_given(const std::string& option) const {
  return is_flag(option) || std::ranges::find(changed, option) != changed.end();
}

SgdConfig TrainConfig::sgd() const {
  return {.sparsifier = sparsifier,
          .momentum = momentum,
          .weight_decay = weight_decay,
          .nesterov = nesterov,
          .error_feedback = !no_error_feedback,
          .residual_decay = residual_decay,
          .selector = selector,
          .exchange = exchange,
          .scope = scope == "auto" ? "" : scope,
          .momentum_before = momentum_correction == "auto"
                                 ? std::nullopt
                                 : std::optional(momentum_correction == "on"),
          .bucket_bytes = static_cast<size_t>(bucket_mib * 1024 * 1024),
          .overlap = overlap,
          .seed = static_cast<uint64_t>(seed),
          .local_steps = is_local() ? local_steps : 0,
          .outer_lr = outer_lr > 0 ? outer_lr : 1,
          .outer_momentum = outer_momentum};
}

void resolve(TrainConfig& config) {
  if (config.dataset == "auto")
    config.dataset = config.data_dir.empty() ? kShapes : dataset_in(config.data_dir, kCifar10);
  if (const auto& rate = models().find(config.model).value.rate; rate && !config.lr_given)
    config.lr = rate->value;
  resolve_warmup(config);
  check_combinations(config);
  config.bn_stats = resolve_bn_stats(config.bn_stats);
  if (!config.pretrained.empty())
    config.pretrained = weights_file(config.pretrained, "weights").string();
}

void check_resume(const TrainConfig& config) {
  if (!config.resume.empty() && config.resume != "auto") checkpoint_to_resume(config.resume);
}

TrainConfig parse_train_config(int argc, char** argv) {
  const OptionTable::Given given = parse_flags(argc, argv);
  TrainConfig config = read_train_config(given, read_run_options(given));
  resolve(config);
  check_resume(config);
  return config;
}

std::string name_of_seed(const std::string& name, int64_t seed) {
  return fmt::format("{}-s{}", name, seed);
}

}  // namespace tw
