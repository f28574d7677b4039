// The order of an epoch's samples: a function of (seed, epoch), so every rank computes the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/rng.h"

namespace tw {

/// Brings `ids` into a uniformly random order, by the draws that follow `first_draw`.
void shuffle(std::span<uint32_t> ids, const Philox& random, uint64_t first_draw = 0);

/// A uniformly random permutation of 0 to n-1.
std::vector<uint32_t> shuffled_order(size_t n, uint64_t seed, uint32_t epoch);

/// Samples of a shard; the last shard of a data set may have fewer.
inline constexpr size_t kShard = 1024;

/// A random order that reads a file in long sequential stretches.
struct ShardOrder {
  struct Shard {
    size_t first;       ///< index in `ids` of its first sample
    size_t begin, end;  ///< its positions in the stored order
  };
  std::vector<uint32_t> ids;
  std::vector<Shard> shards;  ///< in the order in which they are read
};

/// Shuffles the shards of `stored` (sample ids in stored order), and the samples within each shard.
ShardOrder shard_order(std::span<const uint32_t> stored, uint64_t seed, uint32_t epoch);

}  // namespace tw
