// Densities by tensor after the idea of LAGS-SGD (Shi et al. 2020, arXiv 1911.08727): an exchange
// during backward sends what fits into the time until the next one may begin.
#pragma once

#include "apps/advise/config.h"
#include "apps/advise/costs.h"
#include "apps/common/console.h"
#include "sparsify/sgd_plan.h"

namespace tw {

/// The plan of --adapt-density with this argument of --density-of. UserError if it takes none.
SgdPlan plan_with(const std::string& densities, const ParameterArena& arena,
                  const AdviseConfig& config);
/// Prints, for each number of ranks, the seconds of an iteration and the options of `train`.
void print_adapted(Console& console, const ParameterArena& arena, const AdviseConfig& config,
                   Rounds rounds);

}  // namespace tw
