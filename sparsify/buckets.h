// Buckets: how the flat vector is split into exchanges, and each exchange into selections.
#pragma once

#include <span>
#include <vector>

#include "engine/plan/arena.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// A slice of the flat vector.
struct Segment {
  size_t offset, length;
};

/// One exchange: a slice of the flat vector that holds whole tensors.
struct Bucket {
  size_t offset = 0, length = 0;
  size_t parameters = 0;        ///< tensors in it
  std::vector<Segment> sparse;  ///< each has its own selection
  std::vector<Segment> dense;   ///< exchanged without selection

  size_t dense_length() const;
  /// The offset in the flat vector of element i of the concatenated dense segments.
  size_t place_of_dense(size_t i) const;
  /// The sum of k over the sparse segments, for a selector of this volume.
  size_t entries(double density, Volume volume = Volume::exactly_k) const;
};

/// Model scope: one bucket, one selection. Layer scope: neighbouring tensors share a bucket until
/// it holds `bucket_bytes`, and each tensor has a selection of its own. Buckets are in the order in
/// which backward finishes them: the end of the vector first.
std::vector<Bucket> plan_buckets(const ParameterArena& arena, const Sparsifier& sparsifier,
                                 size_t bucket_bytes);

/// The tensors of a bucket, for its exchange.
ExchangePlan plan_exchange(const ParameterArena& arena, const Bucket& bucket, uint64_t seed);

/// Indices at which weight decay starts, stops, starts, ...: the decay_bounds of ops::sgd_update.
std::vector<uint32_t> bounds_of_decay(const ParameterArena& arena);
/// Likewise where momentum is applied before the selection: the corrected_bounds.
std::vector<uint32_t> bounds_of_correction(const ParameterArena& arena,
                                           const Sparsifier& sparsifier);
/// Converts `bounds` to those of `segment`, relative to its first element, and stores them in
/// `within`.
void bounds_within(std::span<const uint32_t> bounds, const Segment& segment,
                   std::vector<uint32_t>& within);

}  // namespace tw
