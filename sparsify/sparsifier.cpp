#include "sparsify/sparsifier.h"

#include "comm/collectives/collectives.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

Registry<Sparsifier>& sparsifiers() {
  static Registry<Sparsifier> registry("sparsifier");
  return registry;
}

Settings default_settings() {
  Settings settings = collective_settings();
  declare(settings, selectors(), exchanges(), setting_groups(), sparsifiers());
  return settings;
}

Sparsifier resolve_sparsifier(const SgdConfig& config, const Settings& settings) {
  Sparsifier algorithm = sparsifiers().find(config.sparsifier).value;
  if (!config.selector.empty()) algorithm.selector = selectors().find(config.selector).name;
  if (!config.exchange.empty()) algorithm.exchange = exchanges().find(config.exchange).name;
  if (!config.scope.empty())
    algorithm.scope = config.scope == "layer" ? Scope::layer : Scope::model;
  algorithm.momentum_before = config.momentum_before.value_or(algorithm.momentum_before);
  check(!config.overlap || algorithm.scope == Scope::layer,
        "[train] overlap needs slices that are ready before backward ends; add --scope layer");
  const bool selects = !algorithm.selector.empty();
  const bool shared =
      selects && selectors().find(algorithm.selector).value.shared_indices(settings);
  // indices that all ranks know are not sent
  if (shared && config.exchange.empty() && algorithm.exchange == "allgather")
    algorithm.exchange = "shared";
  const ExchangeEntry& exchange = exchanges().find(algorithm.exchange).value;
  exchange.validate(settings);
  check(!exchange.dense || !selects,
        "[train] exchange {} sums whole gradients and takes no selector ({})", algorithm.exchange,
        algorithm.selector);
  check(exchange.dense || selects, "[train] exchange {} needs a selector (--selector)",
        algorithm.exchange);
  check(selects || !algorithm.momentum_before,
        "[train] momentum correction comes before a selection; {} selects nothing",
        config.sparsifier);
  check(shared || !exchange.needs_shared_indices(settings),
        "[train] exchange {} needs a selector with the same indices on all ranks; {} selects "
        "different ones",
        algorithm.exchange, algorithm.selector);
  return algorithm;
}

}  // namespace tw
