#include "sparsify/sparsifier.h"

#include "comm/collectives/collectives.h"
#include "sparsify/exchange.h"
#include "sparsify/momentum_correction.h"
#include "sparsify/selector.h"

namespace tw {

Registry<Sparsifier>& sparsifiers() {
  static Registry<Sparsifier> registry("sparsifier");
  return registry;
}

bool keeps_residual(const Sparsifier& sparsifier) {
  return !sparsifier.selector.empty() || exchanges().find(sparsifier.exchange).value.compresses;
}

Settings default_settings() {
  Settings settings = collective_settings();
  declare(settings, selectors(), exchanges(), setting_groups(), sparsifiers());
  return settings;
}

Sparsifier resolve_sparsifier(const SgdConfig& config, const Settings& settings) {
  Sparsifier sparsifier = sparsifiers().find(config.sparsifier).value;
  if (!config.selector.empty()) sparsifier.selector = selectors().find(config.selector).name;
  if (!config.exchange.empty()) sparsifier.exchange = exchanges().find(config.exchange).name;
  sparsifier.scope = config.scope.value_or(sparsifier.scope);
  sparsifier.momentum_before = config.momentum_before.value_or(sparsifier.momentum_before);
  check(!config.overlap || sparsifier.scope == Scope::layer,
        "[train] overlap needs slices that are ready before backward ends; add --scope layer");
  const bool selects = !sparsifier.selector.empty();
  bool shared = false;
  if (selects) {
    const SelectorEntry& selector = selectors().find(sparsifier.selector).value;
    selector.validate(settings);
    shared = selector.shared_indices(settings);
  }
  // indices that all ranks know are not sent
  if (const std::string& other = exchanges().find(sparsifier.exchange).value.with_shared_indices;
      shared && config.exchange.empty() && !other.empty())
    sparsifier.exchange = other;
  const ExchangeEntry& exchange = exchanges().find(sparsifier.exchange).value;
  exchange.validate(settings);
  if (sparsifier.scope == Scope::layer && sparsifier.small_tensors_dense)
    dense_exchange().value.validate(settings);
  check(!exchange.dense || !selects,
        "[train] exchange {} sums whole gradients and takes no selector ({})", sparsifier.exchange,
        sparsifier.selector);
  check(exchange.dense || selects, "[train] exchange {} needs a selector", sparsifier.exchange);
  check(!exchange.one_rank_selects || !sparsifier.momentum_before,
        "[train] exchange {} excludes momentum correction: only one rank selects in a step, and "
        "the others would keep their momentum as it is",
        sparsifier.exchange);
  check(selects || !sparsifier.momentum_before,
        "[train] momentum correction comes before a selection; {} selects nothing",
        config.sparsifier);
  check(keeps_residual(sparsifier) || config.residual_decay == 1,
        "[train] residual-decay has no effect: {} keeps no residual", config.sparsifier);
  check(config.density_of.empty() || selects,
        "[train] density-of needs a selector; {} selects nothing", config.sparsifier);
  check(config.density_of.empty() || sparsifier.scope == Scope::layer,
        "[train] density-of needs a selection from each tensor: scope layer");
  check(config.density_of.empty() || !shared,
        "[train] density-of excludes a selector with the same indices on all ranks ({})",
        sparsifier.selector);
  check(config.density_of.empty() || !exchange.one_threshold(settings) || config.bucket_bytes == 0,
        "[train] density-of with exchange {}, which keeps the largest of all, needs bucket-mib 0",
        sparsifier.exchange);
  check(!config.ef21 || exchange.adds_what_is_sent,
        "[train] ef21 needs an exchange that adds up all that is sent, such as allgather; {} does "
        "not",
        sparsifier.exchange);
  check(!config.ef21 || (!sparsifier.momentum_before && config.local_steps == 0),
        "[train] ef21 sends how a gradient changes from step to step; it excludes momentum "
        "correction and local-steps");
  check(!config.ef21 || (config.error_feedback && config.residual_decay == 1),
        "[train] ef21 takes the place of error feedback; it excludes no-error-feedback and "
        "residual-decay");
  check(config.local_steps == 0 || !config.overlap,
        "[train] overlap exchanges gradients during backward; local-steps exchanges none");
  check(config.local_steps == 0 || !exchange.updates_at_root,
        "[train] exchange {} updates the parameters on rank 0 alone; it excludes local-steps",
        sparsifier.exchange);
  check(!config.overlap || !sparsifier.momentum_before || !clips_whole_gradient(settings),
        "[train] momentum_correction.clip_by=gradient needs all gradients before the first "
        "exchange; it excludes overlap");
  check(shared || !exchange.needs_shared_indices(settings),
        "[train] exchange {} needs a selector with the same indices on all ranks; {} selects "
        "different ones",
        sparsifier.exchange, sparsifier.selector);
  return sparsifier;
}

}  // namespace tw
