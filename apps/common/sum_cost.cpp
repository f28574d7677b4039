#include "apps/common/sum_cost.h"

#include <ranges>

#include "comm/collectives/collectives.h"
#include "sparsify/encoding/sparse_codec.h"

namespace tw {

namespace {

/// The link with the bytes that the codec takes for each of k entries of d.
LinkCost carrying(const LinkCost& link, const SparseCodec& format, double d, double k) {
  const auto entries = static_cast<size_t>(k);
  if (entries == 0) return link;
  const uint64_t bytes = format.expected_bytes(1, entries, 1, static_cast<size_t>(d));
  LinkCost other = link;
  other.entry_bytes = static_cast<double>(bytes) / k;
  return other;
}

}  // namespace

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

DenseCosts allowed_sums(const Settings& settings) {
  constexpr auto kKey = "allreduce.collective";
  const DenseCosts& all = allreduce_costs();
  if (!settings.was_set(kKey)) return all;
  const auto given = all.find(allreduces().find(settings.text(kKey)).name);
  check(given != all.end(), "[settings] {}={} has no cost model; expected one of: {}", kKey,
        settings.text(kKey), fmt::join(std::views::keys(all), ", "));
  return {*given};
}

double seconds_of(const SumCost& sum, const LinkCost& link, int ranks, const DenseSums& sums) {
  const double first = sum(link, ranks, static_cast<double>(sums.first));
  return first + (sums.second > 0 ? sum(link, ranks, static_cast<double>(sums.second)) : 0);
}

bool sums_values(const std::string& exchange) {
  return exchange == "scalecom" || exchange == "shared";
}

ExchangeCost exchange_cost(const std::string& exchange, const Settings& settings,
                           const SumCost& sum) {
  const SparseCost cost = sparse_costs().at(exchange);
  if (!sums_values(exchange))
    return [cost, format = SparseCodec(settings)](const LinkCost& link, int ranks, double d,
                                                  double k) {
      return cost(carrying(link, format, d, k), ranks, d, k);
    };
  if (!sum) return {};
  return [cost, sum, ring = allreduce_costs().at("ring")](const LinkCost& link, int ranks, double d,
                                                          double k) {
    return cost(link, ranks, d, k) - ring(link, ranks, k) + sum(link, ranks, k);
  };
}

}  // namespace tw
