// What changes with time: learning rate per step, density per epoch.
#pragma once

#include <cstdint>

#include "apps/train/config.h"

namespace tw {

/// Learning rate of `batch` (of `batches`) in `epoch`: linear warm-up per step from
/// `warmup_from` times the rate (0: from one step's share of it), then constant, x 0.1 at each
/// milestone, or half a cosine from the end of warm-up to the last step.
double learning_rate(const TrainConfig& config, int64_t epoch, int64_t batch, int64_t batches);

/// What the rate is multiplied by: 1, or the number of batches of `batch_size` in a step, all ranks
/// together. (Goyal et al. 2017, section 2.1)
double learning_rate_factor(const TrainConfig& config, int ranks);

/// Density of `epoch`: the warm-up list, then the final density.
double density_of(const TrainConfig& config, int64_t epoch);

}  // namespace tw
