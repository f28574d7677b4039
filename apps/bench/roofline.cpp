#include "apps/bench/roofline.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/core/buffer.h"
#include "engine/device/event.h"
#include "engine/ops/linear.h"
#include "engine/ops/vector.h"

namespace tw {

namespace {

/// Seconds of the fastest of five calls, after one to warm up.
template <class Body>
double least(Context& ctx, const Body& body) {
  const auto timer = DeviceTimer::create(ctx);
  double best = std::numeric_limits<double>::infinity();
  for (int i = -1; i < 5; ++i) {
    timer->start();
    body();
    const double seconds = timer->stop();
    if (i >= 0) best = std::min(best, seconds);
  }
  return best;
}

/// Memory without zeros, on which some machines are faster. Each float holds two bf16 numbers.
Buffer filled(Context& ctx, size_t bytes) {
  Buffer buffer(ctx.device(), bytes);
  ops::fill(ctx, buffer.as<float>(), std::bit_cast<float>(0x3fc13fc1));
  return buffer;
}

}  // namespace

Ceilings measure_ceilings(Context& ctx, DType dtype, int64_t n, size_t length) {
  const ops::LinearShape shape{
      .batch = n, .in_features = n, .out_features = n, .dtype = dtype, .out_dtype = dtype};
  const auto product = ops::Linear::create(ctx, shape);
  const size_t elements = static_cast<size_t>(n * n), bytes = elements * size_of(dtype);
  const Buffer x = filled(ctx, bytes), w = filled(ctx, elements * sizeof(float));
  const Buffer y(ctx.device(), bytes), packed(ctx.device(), product->packed_bytes());
  const Buffer bias(ctx.device(), static_cast<size_t>(n) * sizeof(float));
  const Buffer scratch(ctx.device(), product->scratch_bytes());
  const Tensor packed_weights = packed.tensor({static_cast<int64_t>(packed.bytes())}, DType::u8);
  const auto kept = ctx.scratch();
  ctx.set_scratch(scratch.as<std::byte>());
  ops::Transfers conversion;
  product->pack(ctx, w.tensor({n, n}, DType::f32), packed_weights, conversion);
  ops::transfer(ctx, conversion);
  const double multiplying = least(ctx, [&] {
    product->forward(ctx, x.tensor({n, n}, dtype), packed_weights, bias.tensor({n}, DType::f32),
                     y.tensor({n, n}, dtype));
  });
  ctx.set_scratch(kept);

  const Buffer from = filled(ctx, length * sizeof(float)), to = filled(ctx, from.bytes());
  const double adding = least(ctx, [&] { ops::add(ctx, from.as<float>(), to.as<float>()); });
  return {.flops = static_cast<double>(shape.flops()) / multiplying,
          .bytes = 3 * static_cast<double>(from.bytes()) / adding};
}

double floor_seconds(const Model& model, const Ceilings& ceilings) {
  double seconds = 0;
  for (const Planner::Product& product : model.planner().products())
    seconds += std::max(static_cast<double>(product.flops) / ceilings.flops,
                        static_cast<double>(product.bytes) / ceilings.bytes);
  // gradient, momentum and parameter are read, the last two written
  const double update = 5.0 * sizeof(float) * static_cast<double>(model.arena().size());
  return seconds + update / ceilings.bytes;
}

nlohmann::ordered_json report_floor(Context& ctx, const Model& model) {
  const bool large = ctx.device() == Device::cuda;
  const Ceilings ceilings =
      measure_ceilings(ctx, model.planner().activations(), large ? 8192 : 2048,
                       large ? size_t{1} << 28 : size_t{1} << 26);
  int64_t flops = 0;
  for (const Planner::Product& product : model.planner().products()) flops += product.flops;
  return {{"peak_gflop_s", 1e-9 * ceilings.flops},
          {"peak_gb_s", 1e-9 * ceilings.bytes},
          {"gflop_step", 1e-9 * static_cast<double>(flops)},
          {"floor_ms", 1e3 * floor_seconds(model, ceilings)}};
}

}  // namespace tw
