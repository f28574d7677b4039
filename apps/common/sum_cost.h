// Seconds, by the cost model, of dense sums and sparse exchanges with the messages that the
// settings `allreduce.*` and `wire.*` ask for.
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
/// The dense collectives that sums may use: the one that `allreduce.collective` was set to, else
/// all with a model. UserError if the given one has none.
DenseCosts allowed_sums(const Settings& settings);
/// Seconds of the sums of an exchange that compresses (powersgd).
double seconds_of(const SumCost& sum, const LinkCost& link, int ranks, const DenseSums& sums);

/// Seconds of an exchange in which each rank has k entries of a vector of d.
using ExchangeCost = std::function<double(const LinkCost&, int ranks, double d, double k)>;
/// Whether the exchange sums values by the dense collective of the settings.
bool sums_values(const std::string& exchange);
/// The cost of an exchange of sparse_costs(); `sum` is that of those that sum values, in place of
/// the model's ring of f32 values. Empty without it.
ExchangeCost exchange_cost(const std::string& exchange, const Settings& settings,
                           const SumCost& sum);

}  // namespace tw
