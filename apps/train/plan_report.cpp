#include "apps/train/plan_report.h"

#include <algorithm>

#include "apps/common/resolve.h"
#include "engine/core/error.h"
#include "models/default_lr.h"
#include "sparsify/buckets.h"
#include "sparsify/selector.h"
#include "sparsify/step_costs.h"

namespace tw {

namespace {

/// The entries that a rank sends in a step (with local steps: in an exchange) and the bytes that
/// all ranks send.
std::string volume_line(const TrainConfig& config, const Sparsifier& sparsifier,
                        const ParameterArena& arena, int ranks) {
  const SgdConfig sgd = config.sgd();
  const bool selects = !sparsifier.selector.empty();
  const double density = selects ? config.density : 1;
  size_t k = selects ? 0 : summed_elements(sparsifier, sgd, config.settings, arena), dense = 0;
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, sgd.bucket_bytes)) {
    if (selects) k += bucket.entries(density);
    dense += bucket.dense_length();
  }
  const Volume volume = density < 1
                            ? selectors().find(sparsifier.selector).value.volume(config.settings)
                            : Volume::exactly_k;
  const bool bounded = volume == Volume::exactly_k || volume == Volume::at_most_k;
  const uint64_t bytes =
      estimated_bytes_sent(sparsifier, sgd, config.settings, arena, ranks, density);
  const char* const time = config.is_local() ? "exchange" : "step";
  if (!selects && k != arena.size())
    return fmt::format(
        "{}: {} floats of factors and short tensors for {} entries per {} and rank, {} sent per {}",
        config.sparsifier, k, arena.size(), time, bytes_text(static_cast<double>(bytes)), time);
  return fmt::format("{}: {}{} of {} entries per {} and rank, {}{} sent per {}{}",
                     config.sparsifier, volume_text(volume, k),
                     dense > 0 ? fmt::format(" and {} of small tensors", dense) : "", arena.size(),
                     time, volume == Volume::at_most_k ? "at most " : "",
                     bytes_text(static_cast<double>(bytes)), time,
                     bounded ? "" : fmt::format(" at {} entries", k));
}

/// The note that a selector has no effect at density 1.
void report_unused_selector(Console& console, const TrainConfig& config,
                            const Sparsifier& sparsifier) {
  if (config.density < 1 || sparsifier.selector.empty()) return;
  const size_t warmup = config.density_warmup.size();
  console.line("density 1{}: all entries are sent; selector {} and its settings have no effect",
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
          .activations = resolve_precision(config.precision, resolve_device(config.device)),
          .label_smoothing = static_cast<float>(config.label_smoothing),
          .recompute = config.recompute == "blocks",
          .mean = data.mean,
          .deviation = data.deviation};
}

namespace {

void report_learning_rate(Console& console, const TrainConfig& config) {
  const auto& defaults = default_learning_rates().entries();
  const auto found = defaults.find(config.model);
  if (found == defaults.end() || config.lr_given) return;
  console.line("learning rate {}, the default of {} ({})", config.lr, config.model,
               found->second.help);
}

}  // namespace

size_t report_plan(Console& console, const TrainConfig& config, const DataSplit& data,
                   const Model& model, const Planner::Memory& memory, const Sparsifier& sparsifier,
                   int ranks) {
  const SgdConfig sgd = config.sgd();
  const size_t d = model.arena().size();
  const auto text = [](size_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  console.line("{}: {} parameters, {} classes, images {}", config.model, d, model.spec().classes,
               model.spec().image);
  if (!config.eval_only) report_learning_rate(console, config);
  console.line("data: {} ({} training images), validation on {} ({})", config.dataset,
               data.train->size(), data.val_name, data.val->size());
  const std::string batch = config.accumulate == 1
                                ? fmt::format("{}", config.batch_size)
                                : fmt::format("{} x {}", config.accumulate, config.batch_size);
  console.line("{} rank{} x {} threads, batch {} each, {} on {}", ranks, ranks == 1 ? "" : "s",
               config.threads_per_rank, batch, config.precision, config.device);
  console.line("batch-norm statistics for validation: {}",
               config.bn_stats == "average" ? "averaged over ranks" : "those of rank 0");

  const size_t parameters = 2 * d * sizeof(float);
  const size_t optimizer = optimizer_bytes(sparsifier, sgd, config.settings, model.arena());
  const size_t total = memory.total() + parameters + optimizer;
  console.line(
      "memory per rank: {} activations{} + {} packed weights and inputs + {} scratch + "
      "{} parameters and gradients + {} optimizer = {}",
      text(memory.workspace), config.recompute == "blocks" ? " (recomputed inside blocks)" : "",
      text(memory.persistent), text(memory.scratch), text(parameters), text(optimizer),
      text(total));
  // ranks that are threads share one GPU
  if (config.device == "cuda" && config.workers > 1)
    console.line("the {} ranks share a GPU: they need {}; {} are free", ranks,
                 text(total * static_cast<size_t>(ranks)), text(free_memory(Device::cuda)));
  console.line("{}", volume_line(config, sparsifier, model.arena(), ranks));
  report_unused_selector(console, config, sparsifier);
  return total;
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
  console.line(
      "local SGD: an exchange every {} step{}, outer rate {}, outer momentum {}; {} exchanges and "
      "{} sent per epoch",
      sgd.local_steps, sgd.local_steps == 1 ? "" : "s", sgd.outer_lr, sgd.outer_momentum, exchanges,
      bytes_text(static_cast<double>(bytes) * static_cast<double>(exchanges)));
}

void rethrow_with_plan(const Communicator& comm, size_t bytes, const OutOfMemory& error) {
  fail<Fault>("[train] rank {}: {} planned for each of {} ranks; {}", comm.rank(),
              bytes_text(static_cast<double>(bytes)), comm.size(), error.what());
}

}  // namespace tw
