#include "apps/support/bench_graph_step.h"

#include "apps/support/graph_step.h"
#include "apps/support/median.h"
#include "engine/rng.h"
#include "engine/stopwatch.h"

namespace tw {

namespace {

/// Images of random bytes: what they show costs nothing.
class RandomImages : public Dataset {
 public:
  RandomImages(size_t size, int64_t side, int64_t class_count) : size_(size) {
    image = {side, side, 3};
    classes = class_count;
  }
  size_t size() const override { return size_; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    const Philox philox(1, Purpose::test);
    for (size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<uint8_t>(philox(i, static_cast<uint32_t>(p / 4))[p % 4]);
    return static_cast<int32_t>(i % static_cast<size_t>(classes));
  }
  bool in_memory() const override { return true; }

 private:
  size_t size_;
};

}  // namespace

nlohmann::ordered_json bench_graph_step(const GraphBench& bench) {
  Context ctx(Device::cuda, 1);
  ctx.set_math({.tf32 = bench.precision == "tf32", .deterministic = bench.deterministic});
  const auto chunk = static_cast<int64_t>(Replay::kMost);
  const RandomImages data(static_cast<size_t>(chunk * bench.batch_size), bench.image_size,
                          bench.classes);
  Model model(bench.model, {.image = data.image, .classes = bench.classes});
  const Planner::Memory memory =
      model.plan(ctx, {.batch = bench.batch_size,
                       .activations = bench.precision == "bf16" ? DType::bf16 : DType::f32,
                       .recompute = bench.recompute});
  model.allocate(ctx, 1);
  TrainConfig config;
  config.batch_size = bench.batch_size;
  const Buffer momentum(ctx.device(), model.arena().size() * sizeof(float));
  GraphStep step(ctx, model, config, data, momentum.as<float>());

  // a chunk of launches at a time; each walks through the data once
  const std::vector<float> rates(Replay::kMost, 1e-4f);
  std::vector<double> seconds;
  const int64_t chunks = (bench.steps + chunk - 1) / chunk;
  const int64_t warmups = (bench.warmup + chunk - 1) / chunk;
  for (int64_t i = -warmups; i < chunks; ++i) {
    step.start_epoch(static_cast<uint32_t>(i + warmups), 0);
    Stopwatch watch;
    step.run(0, rates);
    if (i >= 0) seconds.push_back(watch.total() / static_cast<double>(chunk));
  }
  const double one = median(seconds);
  return {{"images_per_s", static_cast<double>(bench.batch_size) / one},
          {"ms_step", 1e3 * one},
          {"graph_nodes", step.size()},
          {"graph_launches_per_step", 1},
          {"steps_between_host_syncs", chunk},
          {"planned_mib", static_cast<double>(memory.total()) / 1024 / 1024}};
}

}  // namespace tw
