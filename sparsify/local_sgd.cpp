#include "sparsify/local_sgd.h"

#include <cstring>
#include <utility>

#include "engine/core/copy.h"
#include "engine/core/stopwatch.h"
#include "engine/ops/nonfinite.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"

namespace tw {

SgdConfig outer_of(const SgdConfig& config) {
  SgdConfig outer = config;
  outer.momentum = config.outer_momentum;
  outer.nesterov = config.outer_momentum > 0;
  outer.weight_decay = 0;
  outer.local_steps = 0;
  return outer;
}

LocalSgd::LocalSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
                   const Settings& settings)
    : ctx_(ctx),
      arena_(arena),
      config_(config),
      outer_(ctx, comm, arena, outer_of(config), settings),
      decay_bounds_(bounds_of_decay(arena)) {
  resolve_sparsifier(config, settings);  // rejects what local steps exclude
  const size_t bytes = arena.size() * sizeof(float);
  anchor_ = Buffer(ctx.device(), bytes);
  if (config.momentum != 0) inner_momentum_ = Buffer(ctx.device(), bytes);
}

void LocalSgd::begin(const StepInput& input) {
  input_ = input;
  stop_ |= input.stop;
}

StepReport LocalSgd::finish() {
  Stopwatch clock;
  if (round_.steps == 0)
    copy_bytes(ctx_, std::as_bytes(arena_.values()), std::as_writable_bytes(anchor()));
  step_alone();
  ++round_.steps;
  const bool ends = round_.steps >= static_cast<uint64_t>(config_.local_steps) || input_.last;
  if (ends) leave_difference();
  ctx_.synchronize();
  const double seconds = clock.lap();
  StepReport report = ends ? exchange() : StepReport{};
  report.sec_update += seconds;
  return report;
}

void LocalSgd::step_alone() {
  const std::span<const float> g = arena_.gradients();
  if (round_.nonfinite != UINT64_MAX) return;
  if (const size_t bad = ops::first_nonfinite(ctx_, g); bad < g.size()) {
    round_.nonfinite = bad;
    round_.nonfinite_value = value_at(ctx_, &g[bad]);
    return;
  }
  ops::sgd_update(ctx_,
                  {.lr = static_cast<float>(input_.lr),
                   .momentum = static_cast<float>(config_.momentum),
                   .weight_decay = static_cast<float>(config_.weight_decay),
                   .nesterov = config_.nesterov,
                   .scale = 1},
                  decay_bounds_, g, inner_momentum(), arena_.values());
}

/// Replaces the gradients by the difference and the parameters by the anchor. The difference of a
/// rank that found a NaN is that value alone, so that the exchange reports it.
void LocalSgd::leave_difference() {
  const std::span<float> difference = arena_.gradients(), w = arena_.values();
  copy_bytes(ctx_, std::as_bytes(anchor()), std::as_writable_bytes(difference));
  ops::subtract(ctx_, w, difference);
  copy_bytes(ctx_, std::as_bytes(anchor()), std::as_writable_bytes(w));
  if (round_.nonfinite == UINT64_MAX) return;
  ops::fill(ctx_, difference, 0);
  ops::fill(ctx_, difference.subspan(round_.nonfinite, 1), round_.nonfinite_value);
}

StepReport LocalSgd::exchange() {
  StepInput input = input_;
  input.lr = config_.outer_lr;
  const uint64_t before = round_.before;
  input.exchange = before;
  input.covers = std::exchange(round_, {.before = before + 1}).steps;
  input.stop = std::exchange(stop_, false);
  return outer_.step(input);
}

std::vector<NamedVector> LocalSgd::common_vectors() {
  std::vector<NamedVector> vectors = outer_.common_vectors();
  vectors.push_back({"anchor", {ctx_, anchor()}, Holds::parameters});
  return vectors;
}

std::vector<NamedVector> LocalSgd::own_vectors() {
  std::vector<NamedVector> vectors = outer_.own_vectors();
  vectors.push_back({"inner_momentum", {ctx_, inner_momentum()}, Holds::momentum});
  vectors.push_back({"parameters", {ctx_, arena_.values()}, Holds::parameters});
  return vectors;
}

std::vector<NamedState> LocalSgd::states() {
  std::vector<NamedState> states = outer_.states();
  states.push_back({.name = "round",
                    .bytes = std::as_writable_bytes(std::span(&round_, 1)),
                    .part = "",
                    .common = true});
  return states;
}

uint64_t LocalSgd::steps_in_round(std::span<const std::byte> state) {
  Round round;
  check(state.size() == sizeof round, "[checkpoint] round has {} bytes; expected {}", state.size(),
        sizeof round);
  std::memcpy(&round, state.data(), sizeof round);
  return round.steps;
}

std::unique_ptr<Optimizer> make_optimizer(Context& ctx, Communicator& comm, ParameterArena& arena,
                                          const SgdConfig& config, const Settings& settings) {
  if (config.local_steps > 0) return std::make_unique<LocalSgd>(ctx, comm, arena, config, settings);
  return std::make_unique<SyncSgd>(ctx, comm, arena, config, settings);
}

}  // namespace tw
