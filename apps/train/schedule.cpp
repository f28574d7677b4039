#include "apps/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tw {

void resolve_warmup(TrainConfig& config) {
  if (!config.density_warmup) {
    std::vector<double>& densities = config.density_warmup.emplace();
    for (const double density : kWarmupDensities)
      if (density > config.density) densities.push_back(density);
  }
  if (!config.warmup_epochs)
    config.warmup_epochs = std::min(static_cast<double>(std::size(kWarmupDensities)),
                                    kMostWarmup * static_cast<double>(config.epochs));
}

double learning_rate(const TrainConfig& config, int64_t epoch, int64_t batch, int64_t batches) {
  const int64_t step = epoch * batches + batch,
                warmup =
                    std::llround(config.warmup_epochs.value_or(0) * static_cast<double>(batches));
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  if (step < warmup) {
    const double from = config.warmup_from;
    if (from == 0) return config.lr * share(step + 1, warmup);
    return config.lr * (from + (1 - from) * share(step, warmup));
  }
  if (config.lr_schedule == LrSchedule::cosine) {
    const int64_t length = std::max<int64_t>(1, config.epochs * batches - warmup);
    const double done = std::min(1.0, share(step - warmup, length));
    return config.lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  if (config.lr_schedule == LrSchedule::step) {
    const auto passed =
        std::ranges::count_if(config.lr_milestones, [&](int64_t m) { return epoch >= m; });
    return config.lr * std::pow(0.1, static_cast<double>(passed));
  }
  return config.lr;
}

double learning_rate_factor(const TrainConfig& config, int ranks) {
  return config.lr_scaling == LrScaling::linear ? static_cast<double>(ranks * config.accumulate)
                                                : 1.0;
}

bool in_density_warmup(const TrainConfig& config, int64_t epoch) {
  return config.density_warmup && static_cast<size_t>(epoch) < config.density_warmup->size();
}

double density_of(const TrainConfig& config, int64_t epoch) {
  return in_density_warmup(config, epoch) ? (*config.density_warmup)[static_cast<size_t>(epoch)]
                                          : config.density;
}

}  // namespace tw
