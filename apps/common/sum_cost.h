// Seconds, by the cost model, of the dense sums that the settings `allreduce.*` ask for.
#pragma once

#include <functional>

#include "comm/cost_model.h"
#include "engine/core/settings.h"
#include "sparsify/exchange.h"

namespace tw {

/// Seconds of a sum of n elements.
using SumCost = std::function<double(const LinkCost&, int ranks, double n)>;

/// The cost of a dense collective whose messages hold values of this format.
SumCost sum_cost(DenseCost collective, ValueFormat values);
/// The cost of `allreduce.collective` with `allreduce.values`; empty if it has no model.
SumCost chosen_sum_cost(const Settings& settings);
/// Seconds of the sums of an exchange that compresses (powersgd).
double seconds_of(const SumCost& sum, const LinkCost& link, int ranks, const DenseSums& sums);

}  // namespace tw
