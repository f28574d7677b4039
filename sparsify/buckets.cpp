#include "sparsify/buckets.h"

#include <algorithm>

#include "sparsify/selector.h"

namespace tw {

namespace {

bool travels_whole(const Sparsifier& sparsifier, const Parameter& parameter) {
  return sparsifier.scope == Scope::layer && sparsifier.small_tensors_dense &&
         parameter.shape.rank() == 1;
}

}  // namespace

size_t Bucket::dense_length() const {
  size_t sum = 0;
  for (const Segment& segment : dense) sum += segment.length;
  return sum;
}

size_t Bucket::place_of_dense(size_t i) const {
  auto segment = dense.begin();
  for (; i >= segment->length; ++segment) i -= segment->length;
  return segment->offset + i;
}

size_t Bucket::entries(double density, Volume volume) const {
  if (density >= 1) return length - dense_length();
  size_t sum = 0;
  for (const Segment& segment : sparse) sum += entries_to_keep(density, segment.length, volume);
  return sum;
}

std::vector<Bucket> plan_buckets(const ParameterArena& arena, const Sparsifier& sparsifier,
                                 size_t bucket_bytes) {
  const auto& parameters = arena.parameters();
  if (sparsifier.scope == Scope::model)
    return {{.length = arena.size(),
             .parameters = parameters.size(),
             .sparse = {{0, arena.size()}},
             .dense = {}}};

  std::vector<Bucket> buckets;
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    if (buckets.empty() || buckets.back().length * sizeof(float) >= bucket_bytes)
      buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.offset = p->offset;
    bucket.length += p->length();
    ++bucket.parameters;
    (travels_whole(sparsifier, *p) ? bucket.dense : bucket.sparse)
        .push_back({p->offset, p->length()});
  }
  // ascending, so that the selected indices of a bucket ascend
  for (Bucket& bucket : buckets) {
    std::ranges::reverse(bucket.sparse);
    std::ranges::reverse(bucket.dense);
  }
  return buckets;
}

ExchangePlan plan_exchange(const ParameterArena& arena, const Bucket& bucket, uint64_t seed) {
  ExchangePlan plan{.offset = bucket.offset, .tensors = {}, .seed = seed};
  for (const Parameter& p : arena.parameters())
    if (p.offset >= bucket.offset && p.offset < bucket.offset + bucket.length)
      plan.tensors.push_back({p.offset - bucket.offset, p.shape});
  return plan;
}

namespace {

template <class Property>
std::vector<uint32_t> bounds_of(const ParameterArena& arena, const Property& has) {
  std::vector<uint32_t> bounds;
  for (const Parameter& p : arena.parameters())
    if (has(p) != (bounds.size() % 2 == 1)) bounds.push_back(static_cast<uint32_t>(p.offset));
  return bounds;
}

}  // namespace

std::vector<uint32_t> bounds_of_decay(const ParameterArena& arena) {
  return bounds_of(arena, [](const Parameter& p) { return p.decay; });
}

std::vector<uint32_t> bounds_of_correction(const ParameterArena& arena,
                                           const Sparsifier& sparsifier) {
  return bounds_of(arena, [&](const Parameter& p) {
    return sparsifier.momentum_before && !travels_whole(sparsifier, p);
  });
}

void bounds_within(std::span<const uint32_t> bounds, const Segment& segment,
                   std::vector<uint32_t>& within) {
  within.clear();
  auto bound = std::ranges::upper_bound(bounds, segment.offset);
  if ((bound - bounds.begin()) % 2 == 1) within.push_back(0);
  for (; bound != bounds.end() && *bound < segment.offset + segment.length; ++bound)
    within.push_back(static_cast<uint32_t>(*bound - segment.offset));
}

}  // namespace tw
