#include "sparsify/algorithm.h"

#include "comm/collectives.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

Registry<Algorithm>& algorithms() {
  static Registry<Algorithm> registry("sparsifier");
  return registry;
}

Settings default_settings() {
  Settings settings;
  const auto declare = [&](const auto& registry) {
    for (const auto& [name, entry] : registry.entries()) settings.declare(name, entry.settings);
  };
  declare(broadcasts());
  declare(reduces());
  declare(allreduces());
  declare(selectors());
  declare(exchanges());
  declare(setting_groups());
  declare(algorithms());
  return settings;
}

Algorithm resolve_algorithm(const SgdConfig& config) {
  Algorithm algorithm = algorithms().find(config.sparsifier).factory;
  if (!config.selector.empty()) algorithm.selector = selectors().find(config.selector).name;
  if (!config.exchange.empty()) algorithm.exchange = exchanges().find(config.exchange).name;
  if (!config.scope.empty())
    algorithm.scope = config.scope == "layer" ? Scope::layer : Scope::model;
  return algorithm;
}

void check_algorithm(Context& ctx, const SgdConfig& config, const Settings& settings) {
  const Algorithm algorithm = resolve_algorithm(config);
  check(!config.overlap || algorithm.scope == Scope::layer,
        "[train] overlap needs slices that are ready before backward ends; add --scope layer");
  const auto exchange = exchanges().find(algorithm.exchange).factory(settings);
  const bool selects = !algorithm.selector.empty();
  check(!exchange->dense() || !selects,
        "[train] exchange {} sums whole gradients and takes no selector ({})", algorithm.exchange,
        algorithm.selector);
  check(exchange->dense() || selects, "[train] exchange {} needs a selector (--selector)",
        algorithm.exchange);
  if (!exchange->needs_common_indices()) return;
  const auto selector = selectors().find(algorithm.selector).factory(ctx, settings, {});
  check(selector->common_indices(),
        "[train] exchange {} needs a selector whose indices agree on all ranks; {} has its own on "
        "each",
        algorithm.exchange, algorithm.selector);
}

}  // namespace tw
