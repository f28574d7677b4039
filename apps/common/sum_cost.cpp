#include "apps/common/sum_cost.h"

#include "comm/collectives/collectives.h"

namespace tw {

SumCost sum_cost(DenseCost collective, ValueFormat values) {
  if (values == ValueFormat::f32) return collective;
  return [collective](const LinkCost& link, int ranks, double n) {
    return collective(half_messages(link), ranks, n);
  };
}

SumCost chosen_sum_cost(const Settings& settings) {
  const std::string& chosen = allreduces().find(settings.text("allreduce.collective")).name;
  const auto known = allreduce_costs().find(chosen);
  if (known == allreduce_costs().end()) return {};
  return sum_cost(known->second, value_format(settings.text("allreduce.values")));
}

double seconds_of(const SumCost& sum, const LinkCost& link, int ranks, const DenseSums& sums) {
  const double first = sum(link, ranks, static_cast<double>(sums.first));
  return first + (sums.second > 0 ? sum(link, ranks, static_cast<double>(sums.second)) : 0);
}

}  // namespace tw
