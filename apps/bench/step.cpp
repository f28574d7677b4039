#include "apps/bench/step.h"

#include <sys/resource.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/graph_step.h"
#include "apps/bench/roofline.h"
#include "apps/common/median.h"
#include "apps/common/random_batch.h"
#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

struct StepBench {
  std::string model = "resnet20", precision = "f32", device = "cpu";
  bool deterministic = false, recompute = false, floor = false;
  int64_t batch_size = 128, classes = 10, image_size = 32;
  int threads = 1, steps = 10, warmup = 2;
};

void run(const StepBench& bench) {
  if (bench.device == "cuda") {
    const auto result = bench_graph_step({.model = bench.model,
                                          .precision = bench.precision,
                                          .batch_size = bench.batch_size,
                                          .image_size = bench.image_size,
                                          .classes = bench.classes,
                                          .steps = bench.steps,
                                          .warmup = bench.warmup,
                                          .deterministic = bench.deterministic,
                                          .recompute = bench.recompute,
                                          .floor = bench.floor});
    fmt::print("{}\n", result.dump());
    return;
  }
  check(bench.precision != "tf32", "[bench] precision is tf32, which only a GPU has");
  Context ctx(Device::cpu, bench.threads);
  const auto comm = make_self_communicator();
  Model model(bench.model,
              {.image = {bench.image_size, bench.image_size, 3}, .classes = bench.classes});
  const DType activations = bench.precision == "bf16" ? DType::bf16 : DType::f32;
  const Planner::Memory memory = model.plan(
      ctx, {.batch = bench.batch_size, .activations = activations, .recompute = bench.recompute});
  model.allocate(ctx, 1);
  SyncSgd sgd(ctx, *comm, model.arena(), {}, default_settings());
  fill_random_batch(model, 1);
  model.refresh(ctx);

  std::vector<double> forward, backward, update, whole;
  for (int step = -bench.warmup; step < bench.steps; ++step) {
    const PassArgs pass{.ctx = ctx, .step = static_cast<uint64_t>(step + bench.warmup)};
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
      {"images_per_s", static_cast<double>(bench.batch_size) / median(whole)},
      {"ms_step", 1e3 * median(whole)},
      {"ms_forward", 1e3 * median(forward)},
      {"ms_backward", 1e3 * median(backward)},
      {"ms_update", 1e3 * median(update)},
      {"peak_rss_mib", static_cast<double>(usage.ru_maxrss) / 1024},
      {"planned_mib", static_cast<double>(memory.total()) / 1024 / 1024}};
  if (bench.floor) result.update(report_floor(ctx, model));
  fmt::print("{}\n", result.dump());
}

}  // namespace

void add_bench_step(CLI::App& app) {
  const auto bench = std::make_shared<StepBench>();
  CLI::App* command = app.add_subcommand(
      "step", "forward, backward and update on fixed data: medians, as one line of JSON");
  command->add_option("--model", bench->model, "network")->capture_default_str();
  command->add_option("--precision", bench->precision, "f32, bf16 or, on a GPU, tf32")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "bf16", "tf32"}));
  command->add_option("--device", bench->device, "cpu, or cuda: the whole step as one graph")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_flag("--deterministic", bench->deterministic, "GPU: bits that repeat");
  command->add_option("--batch-size", bench->batch_size, "images per step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--image-size", bench->image_size, "side of the images")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--classes", bench->classes, "classes")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000000));
  command->add_flag("--recompute", bench->recompute, "forget activations inside residual blocks");
  command->add_option("--threads", bench->threads, "CPU threads")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--floor", bench->floor,
                    "also the machine's measured rates, and the least time of a step at these");
  command->add_option("--steps", bench->steps, "steps that count")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--warmup", bench->warmup, "steps before them")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->callback([bench] { run(*bench); });
}

}  // namespace tw
