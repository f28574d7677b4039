#include "apps/train/config.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/train/run_folder.h"
#include "apps/train/trainer.h"
#include "comm/collectives/collectives.h"
#include "data/dataset.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

/// Keys of config.json that describe the run and are not options.
constexpr const char* kRunKeys[] = {"set", "run"};

/// --allreduce is short for a setting; whichever of the two comes later counts.
void forward_allreduce(TrainConfig& config) {
  if (!config.allreduce.empty())
    config.settings.set("allreduce.collective", std::exchange(config.allreduce, ""));
}

void apply_file(TrainConfig& config, OptionTable& table, const std::filesystem::path& path) {
  const std::string place = fmt::format("[config] {}", path.string());
  const std::vector<std::byte> bytes = read_file(path);
  Json file = parse_json<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, place);
  check(file.is_object(), "{}: not a JSON object", place);
  if (file.contains("set")) {
    check(file["set"].is_object(), "{}: \"set\" is not an object of key: value", place);
    for (const auto& [key, value] : file["set"].items())
      config.settings.set(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const char* key : kRunKeys) file.erase(key);
  table.set_json(file, place);
  forward_allreduce(config);
}

void check_combinations(const TrainConfig& c) {
  models().find(c.model);
  resolve_sparsifier(c.sgd(), c.settings);
  if (c.dataset != "auto") datasets().find(c.dataset);
  allreduces().find(c.settings.text("allreduce.collective"));
  check(c.density > 0, "[options] density is {}; expected more than 0, at most 1", c.density);
  for (const double density : c.density_warmup)
    check(density > 0, "[options] density-warmup has {}; expected more than 0, at most 1", density);
  if (!c.resume.empty() && c.resume != "auto") checkpoint_to_resume(c.resume);
  check(!c.eval_only || !c.pretrained.empty() || !c.resume.empty(),
        "[options] eval-only has no weights; name them with --pretrained or --resume");
  check(c.pretrained.empty() || c.resume.empty() || c.resume == "auto",
        "[options] pretrained and resume both name weights; give one of them");
  check(!c.overlap || c.analyze_every == 0,
        "[options] analyze-every looks at gradients before any is exchanged; do without overlap");
  check(!c.overlap || !c.measure_wait,
        "[options] measure-wait lets ranks meet before they exchange; do without overlap");
  check(!c.nesterov || c.momentum > 0, "[options] nesterov needs a momentum above 0");
  check(c.momentum_correction != "on" || c.momentum > 0,
        "[options] momentum-correction needs a momentum above 0");
  const std::string missing = c.device == "cuda" ? what_is_missing(Device::cuda) : "";
  check(missing.empty(), "[options] device is cuda, but {}; --device cpu computes here", missing);
  check(c.precision != "tf32" || resolved_device(c) == Device::cuda,
        "[options] precision is tf32, which only a GPU has; expected auto, f32 or bf16");
  check_transport(c.wires, c.device);
  if (!c.wires.link.empty()) parse_link(c.wires.link);
  check(c.wires.ranks_per_node == 1 || !c.wires.link.empty(),
        "[options] ranks-per-node is {}, but no link is emulated between nodes (--link)",
        c.wires.ranks_per_node);
  check(c.name.find('/') == std::string::npos && c.name != "." && c.name != "..",
        "[options] name is {}; expected the name of a folder below --output-dir", c.name);
}

}  // namespace

OptionTable TrainConfig::table() {
  OptionTable t;
  const std::string data = "Model and data", algorithm = "Sparsifier", sgd = "Optimisation",
                    machine = "Machine", run = "Run";
  constexpr double kMost = 1e9, kMostSeed = 4294967295;
  t.add(data, "model", model, "network (see --list)");
  t.add(data, "dataset", dataset, "data set; auto: cifar10 with --data-dir, else shapes");
  t.add(data, "data-dir", data_dir, "folder of the data set");
  t.add(data, "val-size", val_size, "hold out the last N training images for validation");
  t.range(0, kMost);
  t.add(data, "classes", classes, "outputs of the network; 0: as many as the data has classes");
  t.range(0, kMost);
  t.add(data, "zero-init", zero_init, "residual blocks start as their shortcuts");
  t.add(data, "pretrained", pretrained, "safetensors file of weights to start from");
  t.add(data, "batch-size", batch_size, "images per worker that are computed at a time");
  t.range(1, kMost);
  t.add(data, "accumulate", accumulate, "batches per step and worker, whose gradients add up");
  t.range(1, 65536);
  t.add(data, "loader-threads", loader_threads, "threads that prepare batches, per worker");
  t.range(0, 256);
  t.add(data, "image-size", image_size, "side of photographs once cut; 0: 224");
  t.range(0, 4096);
  t.add(data, "colour-jitter", colour_jitter,
        "brightness, contrast and saturation of photographs vary by this share");
  t.range(0, 1);
  t.add(data, "bad-images", bad_images, "damaged photographs end the run, or are left out");
  t.choices({"fail", "skip"});
  t.add(data, "shuffle", shuffle, "all images alike, or shard by shard (record files, slow disks)");
  t.choices({"full", "shards"});

  t.add(algorithm, "sparsifier", sparsifier, "synchronous optimizer (see --list)");
  t.add(algorithm, "density", density, "fraction of the gradient that is sent");
  t.range(0, 1);
  t.add(algorithm, "density-warmup", density_warmup,
        "density of the first epochs, one value an epoch");
  t.range(0, 1);
  t.add(algorithm, "selector", selector, "another selector than the sparsifier's (see --list)");
  t.add(algorithm, "exchange", exchange, "another exchange than the sparsifier's (see --list)");
  t.add(algorithm, "scope", scope, "select from the whole model or from each tensor (layer)");
  t.choices({"auto", "model", "layer"});
  t.add(algorithm, "momentum-correction", momentum_correction,
        "momentum on each rank before the selection, not behind the exchange; auto: for dgc");
  t.choices({"auto", "on", "off"});
  t.add(algorithm, "bucket-mib", bucket_mib,
        "with layers: neighbouring tensors travel together until they hold so much");
  t.range(0, 1e6);
  t.add(algorithm, "overlap", overlap, "with layers: exchange while backward goes on");
  t.add(algorithm, "measure-wait", measure_wait,
        "meet before every exchange: sec_exchange less sec_wait is without stragglers");
  t.add(algorithm, "allreduce", allreduce, "dense collective (see --list)");
  t.add(algorithm, "no-error-feedback", no_error_feedback, "drop what was not sent");
  t.add_settings(algorithm, settings);

  t.add(sgd, "epochs", epochs, "passes over the training images");
  t.range(0, kMost);
  t.add(sgd, "max-steps", max_steps, "stop after so many steps; 0: no limit");
  t.range(0, kMost);
  t.add(sgd, "lr", lr, "learning rate");
  t.range(0, kMost);
  t.add(sgd, "lr-scaling", lr_scaling,
        "linear: times workers and accumulated batches (Goyal et al. 2017)");
  t.choices({"none", "linear"});
  t.add(sgd, "lr-schedule", lr_schedule, "how the rate falls");
  t.choices({"step", "cosine", "constant"});
  t.add(sgd, "lr-milestones", lr_milestones, "epochs at which step multiplies the rate by 0.1");
  t.range(0, kMost);
  t.add(sgd, "warmup-epochs", warmup_epochs, "epochs over which the rate rises, per step");
  t.range(0, kMost);
  t.add(sgd, "warmup-from", warmup_from, "fraction of the rate at which the warm-up starts");
  t.range(0, 1);
  t.add(sgd, "momentum", momentum, "momentum");
  t.range(0, 1);
  t.add(sgd, "nesterov", nesterov, "Nesterov momentum");
  t.add(sgd, "weight-decay", weight_decay, "L2 penalty; not on batch norm and biases");
  t.range(0, kMost);
  t.add(sgd, "decay-all", decay_all, "weight decay on batch norm and biases, too");
  t.add(sgd, "label-smoothing", label_smoothing, "label smoothing");
  t.range(0, 1);
  t.add(sgd, "seed", seed, "seed of everything random");
  t.range(0, kMostSeed);
  t.add(sgd, "seeds", seeds, "run once for each seed, end with mean and deviation");
  t.range(0, kMostSeed);

  t.add(machine, "precision", precision, "arithmetic; auto: bf16 where the hardware has it");
  t.choices({"auto", "f32", "tf32", "bf16"});
  t.add(machine, "device", device, "where to compute; auto: the GPU when there is one");
  t.choices({"auto", "cpu", "cuda"});
  t.add(machine, "deterministic", deterministic,
        "a GPU repeats its bits, too, and picks no algorithms by the clock");
  t.add(machine, "workers", workers, "ranks as threads of this process; 0: 1, or mpirun's");
  t.range(0, 4096);
  t.add(machine, "threads-per-rank", threads_per_rank, "0: cores / ranks; changes bits");
  t.alias("threads");
  t.range(0, 4096);
  t.add(machine, "transport", wires.transport,
        "auto: mpirun's, or between the threads of --workers; nccl: beside it, between GPUs");
  t.choices({"auto", "nccl"});
  t.add(machine, "link", wires.link,
        "emulate a link of RATE,LATENCY between nodes, as in 1Gbit,0.4ms");
  t.add(machine, "ranks-per-node", wires.ranks_per_node, "ranks that share a node and its link");
  t.range(1, 4096);
  t.add(machine, "comm-timeout", wires.comm_timeout,
        "seconds a rank waits for another one before all end; 0: for ever");
  t.range(0, kMost);
  t.add(machine, "recompute", recompute,
        "blocks: forget activations inside residual blocks, compute them again in backward");
  t.choices({"none", "blocks"});

  t.add(run, "output-dir", output_dir, "where run folders are made");
  t.add(run, "name", name, "run folder; default: from model, sparsifier, workers and seed");
  t.add(run, "eval-every", eval_every, "epochs between validations; 0: only the last");
  t.range(0, kMost);
  t.add(run, "checkpoint-every", checkpoint_every, "epochs between checkpoints; 0: only the last");
  t.range(0, kMost);
  t.add(run, "checkpoint-steps", checkpoint_steps, "steps between checkpoints; 0: none");
  t.range(0, kMost);
  t.add(run, "analyze-every", analyze_every,
        "steps between looks at how rank 0's gradient and residual are distributed; 0: none");
  t.range(0, kMost);
  t.add(run, "bn-stats", bn_stats, "batch-norm statistics for validation and checkpoints");
  t.choices({"average", "local"});
  t.add(run, "resume", resume, "continue a run folder or checkpoint; auto: this run's last one");
  t.add(run, "eval-only", eval_only, "validate --pretrained or --resume; train nothing");
  t.add(run, "dry-run", dry_run, "print plan, memory and bytes per step; train nothing");
  t.add(run, "list", list, "print everything registered, with its help");
  t.add(run, "config", config, "JSON file of options; flags beat it");
  return t;
}

Json TrainConfig::json() {
  Json object = table().json();
  object["set"] = settings.values();
  // what asks for this one call, and what stands among the settings
  for (const char* key : {"dry_run", "eval_only", "list", "config", "resume", "seeds", "allreduce"})
    object.erase(key);
  return object;
}

SgdConfig TrainConfig::sgd() const {
  return {.sparsifier = sparsifier,
          .momentum = momentum,
          .weight_decay = weight_decay,
          .nesterov = nesterov,
          .error_feedback = !no_error_feedback,
          .selector = selector,
          .exchange = exchange,
          .scope = scope == "auto" ? "" : scope,
          .momentum_before = momentum_correction == "auto"
                                 ? std::nullopt
                                 : std::optional(momentum_correction == "on"),
          .bucket_bytes = static_cast<size_t>(bucket_mib * 1024 * 1024),
          .overlap = overlap,
          .seed = static_cast<uint64_t>(seed)};
}

TrainConfig parse_train_config(int argc, char** argv) {
  TrainConfig config;
  config.settings = default_settings();
  OptionTable table = config.table();
  const OptionTable::Given given =
      table.parse(argc, argv, "train: synchronous data-parallel SGD with gradient sparsification");

  const auto value_of = [&](const std::string& flag) {
    std::string value;
    for (const auto& [name, text] : given)
      if (name == flag) value = text;
    return value;
  };
  std::filesystem::path file = value_of("config");
  const std::filesystem::path resume = value_of("resume");
  const bool continues = !resume.empty() && resume != "auto";
  check(!continues || value_of("name").empty(),
        "[options] name is for a new run; --resume {} goes on in the folder where that one is",
        resume.string());
  if (file.empty() && continues) {
    // a run folder, its checkpoints folder or one checkpoint below it
    const std::filesystem::path asked = std::filesystem::absolute(resume) / "";
    for (const char* run : {"", "..", "../.."}) {
      const std::filesystem::path found = (asked / run / "config.json").lexically_normal();
      if (file.empty() && std::filesystem::exists(found)) file = found;
    }
  }
  if (!file.empty()) apply_file(config, table, file);
  if (continues) config.pretrained.clear();  // what the run began with; its checkpoint is further
  for (const auto& [name, text] : given) {
    table.set_text(name, text);
    forward_allreduce(config);
  }
  if (config.dataset == "auto") config.dataset = config.data_dir.empty() ? "shapes" : "cifar10";
  check_combinations(config);
  return config;
}

void print_registered() {
  const auto print = [](const auto& registry) {
    fmt::print("{}\n", registry.kind());
    for (const auto& [name, entry] : registry.entries()) {
      fmt::print("  {:<12} {}\n", entry.label(), entry.help);
      for (const Setting& s : entry.settings)
        fmt::print("    --set {}.{}={}  {}{}\n", name, s.key, s.value, s.help,
                   s.choices.empty() ? "" : fmt::format(" ({})", fmt::join(s.choices, ", ")));
    }
  };
  print(models());
  print(datasets());
  print(sparsifiers());
  print(selectors());
  print(exchanges());
  print(allreduces());
  print(setting_groups());
}

}  // namespace tw
