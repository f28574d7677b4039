#include "sparsify/sync_sgd.h"

#include <chrono>
#include <utility>

#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"

namespace tw {

Registry<Algorithm>& algorithms() {
  static Registry<Algorithm> registry("sparsifier");
  return registry;
}

Settings default_settings() {
  Settings settings;
  const auto declare = [&](const auto& registry) {
    for (const auto& [name, entry] : registry.entries()) settings.declare(name, entry.settings);
  };
  declare(selectors());
  declare(exchanges());
  declare(algorithms());
  return settings;
}

namespace {

/// Seconds since the last call (the device's work included).
class PhaseClock {
 public:
  double lap(const Context& ctx) {
    ctx.synchronize();
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

SyncSgd::SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
                 const Settings& settings)
    : ctx_(ctx), comm_(comm), arena_(arena), config_(config), decay_ranges_(arena.decay_ranges()) {
  check(arena.size() < UINT32_MAX,
        "[train] the model has {} parameters; entries travel with 32-bit indices, so it may have "
        "at most {}",
        arena.size(), UINT32_MAX - 1);
  const Algorithm& algorithm = algorithms().find(config.sparsifier).factory;
  exchange_ = exchanges().find(algorithm.exchange).factory(settings);
  const size_t bytes = arena.size() * sizeof(float);
  if (!exchange_->dense()) {
    selector_ = selectors()
                    .find(algorithm.selector)
                    .factory(ctx, settings, {.rank = comm.rank(), .seed = config.seed});
    residual_ = Buffer(ctx.device(), bytes);
  }
  if (config.momentum != 0) momentum_ = Buffer(ctx.device(), bytes);
}

StepReport SyncSgd::step(const StepInput& input) {
  const std::span<float> g = arena_.gradients();
  const uint64_t bytes_before = comm_.bytes_sent();
  StepReport report;
  Control control{.stop = input.stop};
  PhaseClock clock;

  if (selector_)
    report.k = select(input.density, input.step, control);
  else
    report.k = check_finite(control);
  report.nnz = selector_ ? selected_.count : g.size();
  report.sec_select = clock.lap(ctx_);

  exchange_->run(ctx_, comm_,
                 {.gradient = g,
                  .gradient_control = arena_.gradients_with_control(),
                  .residual = residual(),
                  .mine = &selected_,
                  .k = report.k,
                  .step = input.step},
                 control);
  if (control.nonfinite_rank >= 0) report_nonfinite(control, input.step);
  report.stop = control.stop;
  report.bytes_sent = comm_.bytes_sent() - bytes_before;
  report.sec_exchange = clock.lap(ctx_);

  update(input.lr);
  report.sec_update = clock.lap(ctx_);
  return report;
}

size_t SyncSgd::select(double density, uint64_t step, Control& control) {
  const std::span<const float> g = arena_.gradients();
  const size_t k = density < 1 ? entries_to_keep(density, g.size()) : g.size();
  selected_.count = 0;
  const SelectStep in{.g = g, .e = residual(), .k = k, .density = density, .step = step};
  const SelectInfo info =
      density < 1 ? selector_->select(ctx_, in, selected_) : select_all(ctx_, in, selected_);
  control.nonfinite = info.nonfinite;
  if (info.nonfinite != SIZE_MAX) {
    control.nonfinite_value = info.nonfinite_value;  // of u: the sum overflows where g does not
    selected_.count = 0;
  }
  if (!config_.error_feedback) ops::fill(ctx_, residual(), 0);
  return k;
}

// before the sum: afterwards nobody could tell whose it was
size_t SyncSgd::check_finite(Control& control) {
  const std::span<const float> g = arena_.gradients();
  const size_t bad = ops::first_nonfinite(ctx_, g);
  if (bad < g.size()) {
    control.nonfinite = bad;
    control.nonfinite_value = g[bad];
  }
  return g.size();
}

void SyncSgd::update(double lr) {
  ops::SgdParams params{.lr = static_cast<float>(lr),
                        .momentum = static_cast<float>(config_.momentum),
                        .weight_decay = 0,
                        .nesterov = config_.nesterov,
                        .scale = 1.0f / static_cast<float>(comm_.size())};
  for (const auto& [offset, length, decay] : decay_ranges_) {
    params.weight_decay = decay ? static_cast<float>(config_.weight_decay) : 0;
    const std::span<float> m = momentum().empty() ? momentum() : momentum().subspan(offset, length);
    ops::sgd_update(ctx_, params, arena_.gradients().subspan(offset, length), m,
                    arena_.values().subspan(offset, length));
  }
}

void SyncSgd::report_nonfinite(const Control& control, uint64_t step) const {
  const Parameter& parameter = arena_.at(control.nonfinite);
  fail<SharedFault>("[train] rank {}: gradient of {} is {} at element {} (step {})",
                    control.nonfinite_rank, parameter.name, control.nonfinite_value,
                    control.nonfinite - parameter.offset, step);
}

size_t SyncSgd::memory_bytes(const SgdConfig& config, size_t d) {
  const bool dense = algorithms().find(config.sparsifier).factory.selector.empty();
  const size_t vectors = (config.momentum != 0 ? 1 : 0) + 1;  // residual or allreduce scratch
  return vectors * d * sizeof(float) + (dense ? sizeof(float) : 0);
}

}  // namespace tw
