#include "sparsify/step_costs.h"

#include <functional>

#include "sparsify/exchange.h"
#include "sparsify/local_sgd.h"

namespace tw {

namespace {

void for_each_bucket(const Sparsifier& sparsifier, const SgdConfig& config,
                     const Settings& settings, const ParameterArena& arena,
                     const std::function<void(const Bucket&, const Exchange&)>& body) {
  const ExchangeEntry& entry = exchanges().find(sparsifier.exchange).value;
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, config.bucket_bytes))
    body(bucket, *entry(settings, plan_exchange(arena, bucket, config.seed)));
}

}  // namespace

size_t optimizer_bytes(const Sparsifier& sparsifier, const SgdConfig& config,
                       const Settings& settings, const ParameterArena& arena) {
  if (config.local_steps > 0) {
    const size_t own = config.momentum != 0 ? 2 : 1;  // anchor and inner momentum
    return own * arena.size() * sizeof(float) +
           optimizer_bytes(sparsifier, outer_of(config), settings, arena);
  }
  const bool momentum = config.momentum != 0, residual = keeps_residual(sparsifier);
  // momentum after, momentum before, and the residual or the scratch of a dense exchange
  const size_t vectors = (momentum ? 1 : 0) + (momentum && sparsifier.momentum_before ? 1 : 0) + 1;
  size_t bytes = vectors * arena.size() * sizeof(float) + (residual ? 0 : sizeof(float));
  for_each_bucket(sparsifier, config, settings, arena,
                  [&](const Bucket& bucket, const Exchange& exchange) {
                    bytes += exchange.buffer_bytes(bucket.length);
                  });
  return bytes;
}

size_t summed_elements(const Sparsifier& sparsifier, const SgdConfig& config,
                       const Settings& settings, const ParameterArena& arena) {
  size_t sum = 0;
  for_each_bucket(sparsifier, config, settings, arena,
                  [&](const Bucket& bucket, const Exchange& exchange) {
                    sum += exchange.summed_elements(bucket.length);
                  });
  return sum;
}

Volume volume_of(const Sparsifier& sparsifier, const Settings& settings, double density) {
  if (density >= 1 || sparsifier.selector.empty()) return Volume::exactly_k;
  return selectors().find(sparsifier.selector).value.volume(settings);
}

uint64_t estimated_bytes_sent(const Sparsifier& sparsifier, const SgdConfig& config,
                              const Settings& settings, const ParameterArena& arena, int ranks,
                              double density) {
  const auto small = dense_exchange().value(settings);
  const Volume volume = volume_of(sparsifier, settings, density);
  uint64_t bytes = 0;
  for_each_bucket(sparsifier, config, settings, arena,
                  [&](const Bucket& bucket, const Exchange& exchange) {
                    const size_t contributors = static_cast<size_t>(exchange.contributors(ranks));
                    const size_t entries = bucket.entries(density, volume) * contributors;
                    bytes += exchange.wire_bytes(ranks, bucket.length, entries);
                    if (!bucket.dense.empty())
                      bytes += small->wire_bytes(ranks, bucket.dense_length(), 0);
                  });
  return bytes;
}

void read_settings(Context& ctx, const SgdConfig& config, const Settings& settings,
                   const ParameterArena& arena) {
  const SgdConfig sgd = config.local_steps > 0 ? outer_of(config) : config;
  const Sparsifier sparsifier = resolve_sparsifier(sgd, settings);
  if (sparsifier.momentum_before) momentum_correction(settings, sgd.momentum, 1);
  if (!sparsifier.selector.empty())
    selectors().find(sparsifier.selector).value.make(ctx, settings, {});
  for_each_bucket(sparsifier, sgd, settings, arena, [&](const Bucket& bucket, const Exchange&) {
    if (!bucket.dense.empty()) dense_exchange().value(settings);
  });
}

}  // namespace tw
