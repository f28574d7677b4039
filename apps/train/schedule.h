// Schedules: learning rate per step, density per epoch.
#pragma once

#include <cstdint>

#include "apps/train/config.h"

namespace tw {

/// Learning rate of `batch` (of `batches`) in `epoch`: linear warm-up per step from `warmup_from`
/// times the rate (0: from 1 / warm-up steps of it), then constant, times 0.1 at each milestone, or
/// half a cosine from the end of warm-up to the last step.
double learning_rate(const TrainConfig& config, int64_t epoch, int64_t batch, int64_t batches);

/// Factor of the learning rate: 1, or with linear scaling the micro-batches of all ranks in a step.
/// (Goyal et al. 2017)
double learning_rate_factor(const TrainConfig& config, int ranks);

/// Density of `epoch`: the warm-up list, then the final density.
double density_of(const TrainConfig& config, int64_t epoch);

}  // namespace tw
