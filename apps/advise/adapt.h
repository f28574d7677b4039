// Densities by tensor after the idea of LAGS-SGD (Shi et al. 2020, arXiv 1911.08727): an exchange
// during backward sends what fits into the time until the next one may begin.
#pragma once

#include "apps/advise/config.h"
#include "apps/advise/costs.h"
#include "apps/common/console.h"
#include "sparsify/sgd_plan.h"

namespace tw {

/// An exchange during backward: when its gradients are ready, and seconds of selection and exchange
/// at a density.
struct OverlappedExchange {
  double ready = 0;
  std::function<double(double)> seconds{};
};

/// When the last exchange ends. `raise` first raises each density to the largest of three digits
/// with which its exchange ends before the gradients of the next one are ready (the last: before
/// backward ends), if there is one.
double end_of(const std::vector<OverlappedExchange>& exchanges, double backward,
              std::vector<double>& densities, bool raise);

/// The plan of --adapt-density with this argument of --density-of. UserError if it takes none.
SgdPlan plan_with(const std::string& densities, const ParameterArena& arena,
                  const AdviseConfig& config);
/// Prints, for each number of ranks, the seconds of an iteration and the options of `train`.
void print_adapted(Console& console, const ParameterArena& arena, const AdviseConfig& config,
                   Rounds rounds);

}  // namespace tw
