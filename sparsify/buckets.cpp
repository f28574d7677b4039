#include "sparsify/buckets.h"

#include <algorithm>
#include <utility>

#include "sparsify/selector.h"

namespace tw {

namespace {

bool travels_whole(const Sparsifier& sparsifier, const Parameter& parameter) {
  return sparsifier.scope == Scope::layer && sparsifier.small_tensors_dense &&
         parameter.shape.rank() == 1;
}

}  // namespace

size_t Bucket::elements() const {
  if (!packed) return length;
  size_t sum = 0;
  for (const Segment& segment : segments) sum += segment.length;
  return sum;
}

size_t Bucket::place(size_t element) const {
  if (!packed) return offset + element;
  auto segment = segments.begin();
  for (; element >= segment->length; ++segment) element -= segment->length;
  return segment->offset + element;
}

size_t Bucket::entries(double of_step, Volume volume) const {
  size_t sum = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const double own = packed ? 1 : density(i, of_step);
    const size_t whole = segments[i].length;
    sum += own >= 1 ? whole : entries_to_keep(own, whole, volume);
  }
  return sum;
}

std::vector<Bucket> plan_buckets(const ParameterArena& arena, const Sparsifier& sparsifier,
                                 size_t bucket_bytes) {
  const auto& parameters = arena.parameters();
  std::vector<Bucket> buckets;
  if (sparsifier.scope == Scope::model) {
    buckets.push_back(
        {.length = arena.size(), .parameters = parameters.size(), .segments = {{0, arena.size()}}});
    return buckets;
  }
  const auto add = [&](auto begin,
                       auto end) {  // tensors in ascending order, so that indices ascend
    Bucket small{.offset = begin->offset, .packed = true}, bucket{.offset = begin->offset};
    for (auto p = begin; p != end; ++p) {
      bucket.length += p->length();
      (travels_whole(sparsifier, *p) ? small : bucket).segments.push_back({p->offset, p->length()});
    }
    small.length = bucket.length;
    (small.segments.empty() ? bucket : small).parameters = static_cast<size_t>(end - begin);
    if (!small.segments.empty()) buckets.push_back(std::move(small));
    buckets.push_back(std::move(bucket));
  };
  size_t bytes = 0;
  auto end = parameters.end();
  for (auto p = end; p != parameters.begin();) {
    --p;
    bytes += p->length() * sizeof(float);
    if (bytes < bucket_bytes && p != parameters.begin()) continue;
    add(p, std::exchange(end, p));
    bytes = 0;
  }
  return buckets;
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
