#include "apps/common/captured_step.h"

#include <nlohmann/json.hpp>

#include "apps/bench/roofline.h"
#include "apps/bench/subcommands.h"
#include "apps/common/measurements.h"
#include "engine/core/error.h"
#include "engine/core/rng.h"
#include "engine/core/stopwatch.h"

namespace tw {

namespace {

/// A data set of a few random images that repeat, since distinct ones might take gigabytes.
class RandomImages : public Dataset {
 public:
  RandomImages(size_t size, int64_t side, int64_t class_count) : size_(size) {
    image = {side, side, 3};
    classes = class_count;
    const Philox philox(1, Purpose::test);
    drawn_.resize(kDrawn * static_cast<size_t>(image.numel()));
    for (size_t p = 0; p < drawn_.size(); ++p)
      drawn_[p] = static_cast<uint8_t>(philox(p / 4)[p % 4]);
  }
  size_t size() const override { return size_; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    std::copy_n(drawn_.begin() + static_cast<ptrdiff_t>(i % kDrawn * pixels.size()), pixels.size(),
                pixels.begin());
    return static_cast<int32_t>(i % static_cast<size_t>(classes));
  }

 private:
  static constexpr size_t kDrawn = 61;
  size_t size_;
  std::vector<uint8_t> drawn_;
};

}  // namespace

nlohmann::ordered_json bench_captured_step(const StepOptions& options) {
  Context ctx(Device::cuda, 1);
  ctx.set_math(
      {.tf32 = options.precision == Precision::tf32, .deterministic = options.deterministic});
  const auto chunk = static_cast<int64_t>(StepInputs::kMost);
  const RandomImages data(static_cast<size_t>(chunk * options.batch_size), options.image_size,
                          options.classes);
  Model model(options.model, {.image = data.image, .classes = options.classes});
  const Planner::Memory memory = model.plan(ctx, {.batch = options.batch_size,
                                                  .activations = activations_of(options.precision),
                                                  .recompute = options.recompute});
  model.allocate(ctx, 1);
  const Buffer momentum(ctx.device(), model.arena().size() * sizeof(float));
  CapturedStep step(ctx, model, data, {}, momentum.as<float>());

  // each chunk of launches reads the data once
  const std::vector<float> rates(StepInputs::kMost, 1e-4f);
  std::vector<double> seconds;
  const int64_t chunks = (options.steps + chunk - 1) / chunk;
  // at least one: the first steps load kernels and record the graph
  const int64_t warmups = std::max<int64_t>(1, (options.warmup + chunk - 1) / chunk);
  uint64_t launches = 0, waits = 0;
  for (int64_t i = -warmups; i < chunks; ++i) {
    step.start_epoch(static_cast<uint32_t>(i + warmups), 0);
    if (i < 0) {
      step.run(0, rates);
      continue;
    }
    const uint64_t launched = step.launches(), waited = ctx.synchronizations();
    Stopwatch watch;
    step.run(0, rates);
    seconds.push_back(watch.total() / static_cast<double>(chunk));
    launches += step.launches() - launched;
    waits += ctx.synchronizations() - waited;
  }
  if (const std::string notice = step.take_notice(); !notice.empty())
    write_error_line("note: " + notice);
  const double one = median(seconds), steps = static_cast<double>(chunks * chunk);
  nlohmann::ordered_json result = {
      {"images_per_s", static_cast<double>(options.batch_size) / one},
      {"ms_step", 1e3 * one},
      {"graph_nodes", step.graph() ? step.graph()->size() : 0},
      {"graph_launches_per_step", static_cast<double>(launches) / steps},
      {"host_syncs_per_step", static_cast<double>(waits) / steps},
      {"planned_mib", static_cast<double>(memory.total()) / 1024 / 1024}};
  if (options.floor) result.update(report_floor(ctx, model));
  if (!options.csv.empty()) write_step_profile(ctx, model, options, one);
  return result;
}

}  // namespace tw
