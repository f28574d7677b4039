#include "apps/train/plan_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "apps/common/resolve.h"
#include "apps/train/evaluate.h"
#include "apps/train/schedule.h"
#include "engine/core/buffer.h"
#include "engine/core/error.h"
#include "sparsify/buckets.h"
#include "sparsify/selector.h"
#include "sparsify/step_costs.h"

namespace tw {

namespace {

/// The entries that a rank sends in a step (with local steps: in an exchange) and the bytes that
/// all ranks send, at the density after the warm-up.
std::string volume_line(const TrainConfig& config, const Sparsifier& sparsifier,
                        const ParameterArena& arena, int ranks, int64_t epochs) {
  const SgdConfig sgd = config.sgd();
  const bool selects = !sparsifier.selector.empty();
  const double density = selects ? config.density : 1;
  const Volume volume = volume_of(sparsifier, config.settings, density);
  size_t k = selects ? 0 : summed_elements(sparsifier, sgd, config.settings, arena), dense = 0;
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, sgd.bucket_bytes)) {
    if (selects) k += bucket.entries(density, volume);
    dense += bucket.dense_length();
  }
  const bool bounded = volume == Volume::exactly_k || volume == Volume::at_most_k;
  const uint64_t bytes =
      estimated_bytes_sent(sparsifier, sgd, config.settings, arena, ranks, density);
  const char* const time = config.is_local() ? "exchange" : "step";
  if (!selects && k != arena.size())
    return fmt::format(
        "{}: {} floats of factors and short tensors for {} entries per {} and rank, {} sent per {}",
        config.sparsifier, k, arena.size(), time, bytes_text(static_cast<double>(bytes)), time);
  const auto warmup = selects ? std::ssize(*config.density_warmup) : 0;
  const std::string when = warmup == 0       ? ""
                           : warmup < epochs ? fmt::format(" from epoch {} on", warmup + 1)
                                             : fmt::format(" at density {}", density);
  return fmt::format("{}: {}{} of {} entries per {} and rank, {}{} sent per {}{}{}",
                     config.sparsifier, volume_text(volume, k),
                     dense > 0 ? fmt::format(" and {} of small tensors", dense) : "", arena.size(),
                     time, volume == Volume::at_most_k ? "at most " : "",
                     bytes_text(static_cast<double>(bytes)), time,
                     bounded ? "" : fmt::format(" for {} entries", k), when);
}

/// Lines on the densities of the epochs: those of the warm-up, a final one that is not reached, and
/// one that costs more bytes than dense SGD.
void report_densities(Console& console, const TrainConfig& config, const Sparsifier& sparsifier,
                      const ParameterArena& arena, int ranks, int64_t epochs) {
  if (sparsifier.selector.empty() || config.eval_only) return;
  const SgdConfig sgd = config.sgd();
  const char* const time = config.is_local() ? "exchange" : "step";
  const auto text = [](uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const SgdConfig dense{.local_steps = sgd.local_steps};
  const uint64_t dense_bytes = estimated_bytes_sent(resolve_sparsifier(dense, config.settings),
                                                    dense, config.settings, arena, ranks, 1);
  std::vector<double> densities = *config.density_warmup;
  const bool reached = epochs > std::ssize(densities);
  densities.push_back(config.density);
  std::string warmup, lower;
  double costly = 0;
  uint64_t costly_bytes = 0;
  for (size_t i = 0; i < densities.size() && std::cmp_less(i, epochs); ++i) {
    const double density = densities[i];
    const uint64_t bytes =
        estimated_bytes_sent(sparsifier, sgd, config.settings, arena, ranks, density);
    if (bytes > std::max(dense_bytes, costly_bytes)) costly = density, costly_bytes = bytes;
    if (i == config.density_warmup->size()) continue;
    size_t k = 0;
    for (const Bucket& bucket : plan_buckets(arena, sparsifier, sgd.bucket_bytes))
      k += bucket.entries(density, volume_of(sparsifier, config.settings, density));
    warmup += fmt::format("{} {} in epoch {} ({} entries, {} per {})", i > 0 ? "," : "", density,
                          i + 1, k, text(bytes), time);
    if (density < config.density && lower.empty())
      lower = fmt::format("density {} of epoch {} is below the density {} that follows", density,
                          i + 1, config.density);
  }
  if (!warmup.empty()) console.paragraph("density warm-up:{}", warmup);
  if (!lower.empty()) console.paragraph("{}", lower);
  if (!reached && epochs > 0)
    console.paragraph(
        "density {} is never reached: the warm-up takes {} epoch{}, the run has {}; "
        "--density-warmup none trains at this density from the start",
        config.density, config.density_warmup->size(),
        config.density_warmup->size() == 1 ? "" : "s", epochs);
  constexpr double kNoticeable = 1.01;
  if (dense_bytes > 0 &&
      static_cast<double>(costly_bytes) > kNoticeable * static_cast<double>(dense_bytes))
    console.paragraph("density {} sends {} per {}, more than dense SGD with {}", costly,
                      text(costly_bytes), time, text(dense_bytes));
}

/// The note that a selector has no effect at density 1.
void report_unused_selector(Console& console, const TrainConfig& config,
                            const Sparsifier& sparsifier) {
  if (config.density < 1 || sparsifier.selector.empty()) return;
  const size_t warmup = config.density_warmup->size();
  console.paragraph(
      "density 1{}: all entries are sent; selector {} and its settings have no effect",
      warmup > 0 ? fmt::format(" from epoch {} on", warmup + 1) : "", sparsifier.selector);
}

}  // namespace

int64_t class_count(const TrainConfig& config, const DataSplit& data) {
  const int64_t found = data.train->classes;
  check(config.classes == 0 || config.classes >= found, "[options] classes is {}; the data has {}",
        config.classes, found);
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

namespace {

void report_learning_rate(Console& console, const TrainConfig& config) {
  const auto& rate = models().find(config.model).value.rate;
  if (!rate || config.lr_given) return;
  console.paragraph("learning rate {}, the default of {} ({})", config.lr, config.model,
                    rate->reason);
}

/// `epochs`: those that the run begins, which --max-steps may limit.
void report_warmup(Console& console, const TrainConfig& config, int64_t epochs) {
  if (config.warmup_epochs == 0) return;
  TrainConfig other;
  other.epochs = config.epochs;
  resolve_warmup(other);
  const bool cut = epochs < config.epochs && static_cast<double>(epochs) <= *config.warmup_epochs;
  console.paragraph(
      "learning-rate warm-up: the first {:.3g} of {} epochs{}{}", *config.warmup_epochs,
      config.epochs,
      config.warmup_epochs == other.warmup_epochs ? " (auto: 2, at most a fifth)" : "",
      cut ? "; --max-steps ends the run before its end" : "");
}

/// What a validation normalises with.
std::string statistics_text(const TrainConfig& config, size_t samples, int ranks) {
  const int64_t batches = batches_to_recompute(config.bn_stats, config.batch_size, samples);
  if (batches > 0)
    return fmt::format("recomputed from {} training images", batches * config.batch_size);
  if (ranks == 1) return "running averages";
  return config.bn_stats == "local" ? "those of rank 0" : "averaged over ranks";
}

std::string link_text(const CommOptions& comm, int ranks) {
  if (comm.link.empty() || ranks == 1) return "";
  return fmt::format(", links of {} emulated{}", comm.link,
                     comm.ranks_per_node == 1
                         ? ""
                         : fmt::format(" between nodes of {} ranks", comm.ranks_per_node));
}

}  // namespace

size_t report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                   const Model& model, const Planner::Memory& memory, const Sparsifier& sparsifier,
                   int ranks, int64_t epochs) {
  const SgdConfig sgd = config.sgd();
  const size_t d = model.arena().size();
  const auto text = [](size_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  console.paragraph("{}: {} parameters, {} classes, images {}", config.model, d,
                    model.spec().classes, model.spec().image);
  if (const std::string note = size_note(config.model, model.spec().image); !note.empty())
    console.paragraph("{}", note);
  if (!config.eval_only) {
    report_learning_rate(console, config);
    report_warmup(console, config, epochs);
  }
  if (datasets().find(config.dataset).value.generated && config.data_dir.empty())
    console.paragraph("no --data-dir given: training on the generated data set {}", config.dataset);
  console.paragraph("data: {} ({} training images), validation on {} images: {}", config.dataset,
                    data.train->size(), data.val->size(), data.val_name);
  if (!data.left_out.empty()) console.paragraph("data not read: {}", data.left_out);
  const std::string batch = config.accumulate == 1
                                ? fmt::format("{}", config.batch_size)
                                : fmt::format("{} x {}", config.accumulate, config.batch_size);
  console.paragraph("{} rank{} x {} thread{}, batch {} each, {} on {}{}", ranks,
                    ranks == 1 ? "" : "s", config.threads_per_rank,
                    config.threads_per_rank == 1 ? "" : "s", batch, word(*config.precision),
                    word(*config.device), link_text(config.comm, ranks));
  if (!model.arena().statistics().empty())
    console.paragraph("batch-norm statistics for validation: {}",
                      statistics_text(config, data.train->size(), ranks));

  const size_t parameters = 2 * d * sizeof(float);
  const size_t optimizer = optimizer_bytes(sparsifier, sgd, config.settings, model.arena());
  const size_t total = memory.total() + parameters + optimizer;
  console.paragraph(
      "memory per rank: {} activations{} + {} packed weights and inputs + {} scratch + "
      "{} parameters and gradients + {} optimizer = {}",
      text(memory.workspace),
      config.recompute == Recompute::blocks ? " (recomputed inside blocks)" : "",
      text(memory.persistent), text(memory.scratch), text(parameters), text(optimizer),
      text(total));
  // ranks that are threads share one GPU
  if (config.device == Device::cuda && config.workers > 1)
    console.paragraph("the {} ranks share a GPU: they need {}; {} are free", ranks,
                      text(total * static_cast<size_t>(ranks)), text(free_memory(Device::cuda)));
  console.paragraph("{}", volume_line(config, sparsifier, model.arena(), ranks, epochs));
  report_densities(console, config, sparsifier, model.arena(), ranks, epochs);
  report_unused_selector(console, config, sparsifier);
  return total;
}

std::vector<std::string> unused_options(Context& ctx, const TrainConfig& config,
                                        const DataSplit& data, const Model& model, int ranks) {
  const Sparsifier sparsifier = resolve_sparsifier(config.sgd(), config.settings);
  config.settings.forget_reads();
  read_settings(ctx, config.sgd(), config.settings, model.arena());
  const std::vector<std::string> unread = config.settings.unread({kNodeSetting});
  const bool no_nodes =
      config.comm.link.empty() && std::ranges::find(unread, kNodeSetting) != unread.end();
  const auto& parameters = model.arena().parameters();
  const bool blocks = std::ranges::any_of(
      parameters, [](const Parameter& p) { return p.name.starts_with("layer1."); });
  const bool bytes_in_memory = data.train->supports_resident(), dense = sparsifier.selector.empty();
  const Shape& image = data.train->image;
  const std::string no_blocks = config.model + " has no residual blocks",
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
      {"image-size", config.image_size > 0 && bytes_in_memory,
       fmt::format("images of {} are {} x {}", config.dataset, image[0], image[1]), Kind::mistake},
      {"colour-jitter", config.colour_jitter > 0 && bytes_in_memory,
       config.dataset + " has no JPEG images", Kind::mistake},
      {"bad-images", config.bad_images == BadImages::skip && bytes_in_memory,
       config.dataset + " has no JPEG images", Kind::mistake},
      {"shuffle", config.shuffle == Shuffle::shards && data.train->storage() == nullptr,
       config.dataset + " is no record file", Kind::mistake},
      {"ranks-per-node", no_nodes,
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
      {"allreduce", ranks == 1, "one rank sends no messages"},
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
  if (!config.eval_only)
    for (const std::string& key : config.settings.unread(config.flags))
      add("set " + key, "no part of this run reads it", config.is_flag(key));
  return notes;
}

void report_length(Console& console, const TrainConfig& config, const Model& model, int ranks,
                   int64_t batches) {
  const SgdConfig sgd = config.sgd();
  const Sparsifier sparsifier = resolve_sparsifier(sgd, config.settings);
  const int64_t every = std::max<int64_t>(1, sgd.local_steps), whole = config.epochs * batches,
                steps = config.max_steps > 0 ? std::min(whole, config.max_steps) : whole;
  double bytes = 0;
  std::map<double, uint64_t> estimates;  // of an exchange, by density
  for (int64_t epoch = 0; epoch * batches < steps; ++epoch) {
    const int64_t trained = std::min(batches, steps - epoch * batches);
    const double density = sparsifier.selector.empty() ? 1 : density_of(config, epoch);
    const auto [known, added] = estimates.try_emplace(density);
    if (added)
      known->second =
          estimated_bytes_sent(sparsifier, sgd, config.settings, model.arena(), ranks, density);
    bytes +=
        static_cast<double>((trained + every - 1) / every) * static_cast<double>(known->second);
  }
  console.paragraph("{} steps per epoch, {} in all{}", batches, steps,
                    ranks > 1 ? fmt::format(", about {} sent", bytes_text(bytes)) : "");
}

void report_local_steps(Console& console, const TrainConfig& config, const Model& model, int ranks,
                        int64_t batches) {
  const SgdConfig sgd = config.sgd();
  if (sgd.local_steps == 0) return;
  const Sparsifier sparsifier = resolve_sparsifier(sgd, config.settings);
  const double density = sparsifier.selector.empty() ? 1 : config.density;
  const uint64_t bytes =
      estimated_bytes_sent(sparsifier, sgd, config.settings, model.arena(), ranks, density);
  const int64_t exchanges = (batches + sgd.local_steps - 1) / sgd.local_steps;
  console.paragraph(
      "local SGD: an exchange every {} step{}, outer rate {}, outer momentum {}; {} exchanges and "
      "{} sent per epoch",
      sgd.local_steps, sgd.local_steps == 1 ? "" : "s", sgd.outer_lr, sgd.outer_momentum, exchanges,
      bytes_text(static_cast<double>(bytes) * static_cast<double>(exchanges)));
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
