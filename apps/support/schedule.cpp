#include "apps/support/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tw {

double learning_rate(const TrainConfig& config, int64_t epoch, int64_t batch, int64_t batches) {
  const double steps = static_cast<double>(batches);
  const double now = static_cast<double>(epoch) + static_cast<double>(batch) / steps;
  const double warmup = static_cast<double>(config.warmup_epochs);
  if (now < warmup) return config.lr * (now * steps + 1) / (warmup * steps);
  if (config.lr_schedule == "cosine") {
    const double length = std::max(1.0, static_cast<double>(config.epochs) - warmup);
    const double done = std::min(1.0, (now - warmup) / length);
    return config.lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  if (config.lr_schedule == "step") {
    const auto passed =
        std::ranges::count_if(config.lr_milestones, [&](int64_t m) { return epoch >= m; });
    return config.lr * std::pow(0.1, static_cast<double>(passed));
  }
  return config.lr;
}

double density_of(const TrainConfig& config, int64_t epoch) {
  const size_t e = static_cast<size_t>(epoch);
  return e < config.density_warmup.size() ? config.density_warmup[e] : config.density;
}

}  // namespace tw
