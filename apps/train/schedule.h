// Schedules: learning rate per step, density per epoch.
#pragma once

#include <cstdint>

#include "apps/train/config.h"

namespace tw {

inline constexpr double kWarmupDensities[] = {0.015625, 0.004};
inline constexpr double kMostWarmup = 0.2;  ///< of the epochs

/// Sets density_warmup and warmup_epochs where they are not. The density warm-up is
/// kWarmupDensities, without values that are not above the density. The learning rate rises for the
/// epochs that all of them take, at most for kMostWarmup.
void resolve_warmup(TrainConfig& config);

/// Learning rate of `batch` (of `batches`) in `epoch`. Warm-up raises it linearly, step by step,
/// from `warmup_from` times the rate (0: from rate / warm-up steps). It then stays constant, is
/// multiplied by 0.1 at each milestone, or follows half a cosine that ends one step after the last.
double learning_rate(const TrainConfig& config, int64_t epoch, int64_t batch, int64_t batches);

/// Factor of the learning rate: 1, or with linear scaling (Goyal et al. 2017) the number of
/// micro-batches in a step, all ranks together.
double learning_rate_factor(const TrainConfig& config, int ranks);

/// Whether `epoch` is one of the warm-up list.
bool in_density_warmup(const TrainConfig& config, int64_t epoch);

/// Density of `epoch`: the warm-up list, then the final density.
double density_of(const TrainConfig& config, int64_t epoch);

}  // namespace tw
