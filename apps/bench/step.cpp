#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "apps/bench/roofline.h"
#include "apps/bench/subcommands.h"
#include "apps/common/measurements.h"
#include "apps/common/outputs.h"
#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

void write_step_profile(Context& ctx, Model& model, const StepOptions& options, double scale_to) {
  std::vector<ComputeProfile> profiles;
  for (int64_t step = -options.warmup; step < options.steps; ++step) {
    const ComputeProfile profile =
        time_passes(ctx, model, static_cast<uint64_t>(step + options.warmup));
    if (step >= 0) profiles.push_back(profile);
  }
  ComputeProfile profile = median_profile(profiles);
  if (scale_to > 0) profile.scale(scale_to / profile.seconds());
  write_profile(options.csv, model.arena(), profile);
}

namespace {

void run_step(const StepOptions& options) {
  check_table(options.csv, kProfileColumns);
  if (options.device == Device::cuda) {
    fmt::print("{}\n", bench_captured_step(options).dump());
    return;
  }
  check(options.precision != Precision::tf32,
        "[bench] precision is tf32, which needs --device cuda");
  Context ctx(Device::cpu, static_cast<int>(options.threads));
  const auto comm = make_self_communicator();
  Model model(options.model,
              {.image = {options.image_size, options.image_size, 3}, .classes = options.classes});
  const DType activations = activations_of(options.precision);
  const Planner::Memory memory = model.plan(
      ctx,
      {.batch = options.batch_size, .activations = activations, .recompute = options.recompute});
  model.allocate(ctx, 1);
  SyncSgd sgd(ctx, *comm, model.arena(), {}, default_settings());
  fill_random_batch(ctx, model, 1);
  model.refresh(ctx);

  std::vector<double> forward, backward, update, whole;
  for (int64_t step = -options.warmup; step < options.steps; ++step) {
    const PassArgs pass{.ctx = ctx, .step = static_cast<uint64_t>(step + options.warmup)};
    Stopwatch watch;
    model.forward(pass);
    const double sec_forward = watch.lap();
    model.backward(pass);
    const double sec_backward = watch.lap();
    sgd.step({.step = pass.step, .lr = 1e-4});
    model.refresh(ctx);
    const double sec_update = watch.lap();
    if (step < 0) continue;
    forward.push_back(sec_forward);
    backward.push_back(sec_backward);
    update.push_back(sec_update);
    whole.push_back(watch.total());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json result = {
      {"images_per_s", static_cast<double>(options.batch_size) / median(whole)},
      {"ms_step", 1e3 * median(whole)},
      {"ms_forward", 1e3 * median(forward)},
      {"ms_backward", 1e3 * median(backward)},
      {"ms_update", 1e3 * median(update)},
      {"peak_rss_mib", static_cast<double>(usage.ru_maxrss) / 1024},
      {"planned_mib", static_cast<double>(memory.total()) / 1024 / 1024}};
  if (options.floor) result.update(report_floor(ctx, model));
  if (!options.csv.empty()) write_step_profile(ctx, model, options);
  fmt::print("{}\n", result.dump());
}

}  // namespace

Subcommand bench_step() {
  auto [command, options] = subcommand(
      "step", "forward, backward and update on fixed data: medians, as one line of JSON", run_step);
  OptionTable& t = command.table;
  t.group("Model");
  t.add("model", options->model, "network (see train --list)", {.suggestions = models().names()});
  t.add("batch-size", options->batch_size, "images per step", {.least = 1});
  t.add("image-size", options->image_size, "height and width of an image", {.least = 1});
  t.add("classes", options->classes, "outputs of the network", {.least = 2, .most = 1e6});
  t.add("recompute", options->recompute,
        "recompute activations inside residual blocks in backward to save memory");
  t.group("Machine");
  t.add("device", options->device, "where to compute; cuda: the whole step as one graph");
  t.add("precision", options->precision, "arithmetic; tf32 on a GPU only",
        {.choices = {"f32", "bf16", "tf32"}});
  t.add("deterministic", options->deterministic, "bitwise-reproducible GPU kernels");
  t.add("threads-per-rank", options->threads, "CPU threads", {.least = 1, .most = 4096});
  t.group("Measurement");
  t.add("steps", options->steps, "measured steps", {.least = 1});
  t.add("warmup", options->warmup, "steps before the measured ones");
  t.add("csv", options->csv,
        "also write forward and backward by parameter to this file, for advise "
        "--compute-profile",
        {.traits = kLocal});
  t.add("floor", options->floor,
        "also print the machine's measured rates and the lower bound of a step at these rates; "
        "Winograd convolutions, which multiply less, may be faster");
  return command;
}

}  // namespace tw
