#include "sparsify/step_costs.h"

#include "sparsify/exchange.h"
#include "sparsify/local_sgd.h"

namespace tw {

size_t optimizer_bytes(const Sparsifier& sparsifier, const SgdConfig& config, size_t d) {
  if (config.local_steps > 0) {
    const size_t own = config.momentum != 0 ? 2 : 1;  // anchor and inner momentum
    return own * d * sizeof(float) + optimizer_bytes(sparsifier, outer_of(config), d);
  }
  const bool dense = sparsifier.selector.empty();
  const bool momentum = config.momentum != 0;
  // momentum after, momentum before, and the residual or the scratch of a dense exchange
  const size_t vectors = (momentum ? 1 : 0) + (momentum && sparsifier.momentum_before ? 1 : 0) + 1;
  return vectors * d * sizeof(float) + (dense ? sizeof(float) : 0);
}

uint64_t estimated_bytes_sent(const Sparsifier& sparsifier, const SgdConfig& config,
                              const Settings& settings, const ParameterArena& arena, int ranks,
                              double density) {
  const auto exchange = exchanges().find(sparsifier.exchange).value.make(settings);
  const auto small = exchanges().find("allreduce").value.make(settings);
  uint64_t bytes = 0;
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, config.bucket_bytes)) {
    const size_t entries = bucket.entries(density) * static_cast<size_t>(ranks);
    bytes += exchange->wire_bytes(ranks, bucket.length, entries);
    if (!bucket.dense.empty()) bytes += small->wire_bytes(ranks, bucket.dense_length(), 0);
  }
  return bytes;
}

}  // namespace tw
