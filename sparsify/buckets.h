// Buckets: how the flat vector is split into exchanges, and each exchange into selections.
#pragma once

#include <memory>
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

/// One exchange, of a slice of the flat vector that holds whole tensors.
struct Bucket {
  size_t offset = 0, length = 0;
  /// Tensors whose gradients it waits for; 0 behind a packed bucket of the same slice, which waits
  /// for both.
  size_t parameters = 0;
  std::vector<Segment> segments{};  ///< each has its own selection
  /// Its segments are exchanged densely, one behind the other in memory of their own.
  bool packed = false;
  std::vector<double> densities{};  ///< of its segments; 0, or none at all: that of the step
  // set by SgdPlan
  std::unique_ptr<Exchange> exchange{};
  size_t first_slice = 0;  ///< number of its first segment in the model

  /// Elements of the vector that is exchanged.
  size_t elements() const;
  /// The offset in the flat vector of one of them.
  size_t place(size_t element) const;
  /// That of a segment in a step of this density.
  double density(size_t segment, double of_step) const {
    return !densities.empty() && densities[segment] > 0 ? densities[segment] : of_step;
  }
  /// The sum of k over the segments, for a selector of this volume; of a packed bucket, and at a
  /// density of 1, all that are exchanged.
  size_t entries(double density, Volume volume = Volume::exactly_k) const;
  /// Seconds of its exchange as Exchange::seconds(), with k entries; 0 without any.
  double seconds(const LinkCost& link, int ranks, size_t k) const {
    return k > 0 ? exchange->seconds(link, ranks, elements(), k) : 0;
  }
};

/// Model scope: one bucket, one selection. Layer scope: neighbouring tensors share a bucket until
/// it holds `bucket_bytes`, and each tensor has a selection of its own; its small tensors that are
/// exchanged densely form a packed bucket before it. Buckets are in the order in which backward
/// finishes them: the end of the vector first.
std::vector<Bucket> plan_buckets(const ParameterArena& arena, const Sparsifier& sparsifier,
                                 size_t bucket_bytes);

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
