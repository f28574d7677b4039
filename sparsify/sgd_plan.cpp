#include "sparsify/sgd_plan.h"

#include <algorithm>

#include "sparsify/local_sgd.h"
#include "sparsify/tensor_density.h"

namespace tw {

namespace {

/// The tensors of a bucket, for its exchange.
ExchangePlan plan_exchange(const ParameterArena& arena, const Bucket& bucket, uint64_t seed) {
  ExchangePlan plan{.offset = bucket.offset, .tensors = {}, .seed = seed};
  for (const Parameter& p : arena.parameters())
    if (p.offset >= bucket.offset && p.offset < bucket.offset + bucket.length)
      plan.tensors.push_back({p.offset - bucket.offset, p.shape});
  return plan;
}

/// The vectors of d floats that the optimizer has, without the scratch of a dense exchange.
size_t vectors_of(const SgdConfig& config, const Sparsifier& sparsifier) {
  const size_t momentum = config.momentum != 0 ? 1 : 0;
  if (config.local_steps > 0)  // the anchor, and the momentum of the local steps
    return 1 + momentum + vectors_of(outer_of(config), sparsifier);
  return momentum * (sparsifier.momentum_before ? 2 : 1) + (keeps_residual(sparsifier) ? 1 : 0) +
         (config.ef21 ? 2 : 0);
}

}  // namespace

SgdPlan::SgdPlan(const ParameterArena& arena, const SgdConfig& config, const Settings& settings,
                 const std::vector<HostId>& machines)
    : sparsifier(resolve_sparsifier(config, settings)),
      buckets(plan_buckets(arena, sparsifier, config.bucket_bytes)) {
  set_densities(buckets, arena, config.density_of);
  const size_t scratch = keeps_residual(sparsifier) ? 0 : arena.size() + 1;  // of a dense exchange
  optimizer_bytes = (vectors_of(config, sparsifier) * arena.size() + scratch) * sizeof(float);
  const ExchangeEntry& entry = exchanges().find(sparsifier.exchange).value;
  for (Bucket& bucket : buckets) {
    if (bucket.packed) {
      bucket.exchange = dense_exchange().value(settings);
      packed.insert(packed.end(), bucket.segments.begin(), bucket.segments.end());
      continue;
    }
    ExchangePlan plan = plan_exchange(arena, bucket, config.seed);
    plan.error_feedback = config.error_feedback && config.residual_decay != 0;
    plan.machines = machines;
    bucket.exchange = entry(settings, plan);
    bucket.first_slice = slices;
    slices += bucket.segments.size();
    optimizer_bytes += bucket.exchange->buffer_bytes(bucket.length);
  }
  if (!sparsifier.selector.empty())
    volume_ = selectors().find(sparsifier.selector).value.volume(settings);
}

size_t SgdPlan::packed_elements() const {
  size_t sum = 0;
  for (const Segment& segment : packed) sum += segment.length;
  return sum;
}

size_t SgdPlan::entries(double density) const {
  size_t sum = 0;
  for (const Bucket& bucket : buckets)
    if (!bucket.packed)
      sum += sparsifier.selector.empty() ? bucket.exchange->summed_elements(bucket.length)
                                         : bucket.entries(density, volume(density));
  return sum;
}

uint64_t SgdPlan::bytes_sent(int ranks, double density) const {
  uint64_t bytes = 0;
  for (const Bucket& bucket : buckets) {
    const auto contributors = static_cast<size_t>(bucket.exchange->contributors(ranks));
    const size_t entries = bucket.entries(density, volume(density)) * contributors;
    bytes += bucket.exchange->wire_bytes(ranks, bucket.elements(), entries);
  }
  return bytes;
}

uint64_t SgdPlan::dense_exchanges() const {
  uint64_t most = 0;
  for (const Bucket& bucket : buckets)
    if (!bucket.packed) most = std::max(most, bucket.exchange->dense_exchanges());
  return most;
}

double SgdPlan::seconds(const LinkCost& link, const LinkCost& own, int ranks,
                        double density) const {
  double sum = 0;
  for (const Bucket& bucket : buckets)
    sum += bucket.seconds(link, ranks, bucket.entries(density, volume(density))) +
           bucket.exchange->seconds_inside(own, ranks, bucket.elements());
  return sum;
}

void read_settings(Context& ctx, const SgdConfig& config, const Settings& settings,
                   const ParameterArena& arena) {
  const SgdPlan plan(arena, config, settings);
  const double momentum = config.local_steps > 0 ? outer_of(config).momentum : config.momentum;
  if (plan.sparsifier.momentum_before) momentum_correction(settings, momentum, 1);
  if (!plan.sparsifier.selector.empty())
    selectors().find(plan.sparsifier.selector).value.make(ctx, settings, {});
}

}  // namespace tw
