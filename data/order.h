// The order in which an epoch visits its samples. It follows from (seed, epoch) alone: every rank
// knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw {

/// n samples, every order as likely as any other.
std::vector<uint32_t> shuffled_order(size_t n, uint64_t seed, uint32_t epoch);

/// Samples of a shard, the last one excepted.
inline constexpr size_t kShard = 1024;

/// An order that reads what is stored in long stretches.
struct ShardOrder {
  struct Shard {
    size_t first;       ///< where it begins in `ids`
    size_t begin, end;  ///< which part of the storage order it is
  };
  std::vector<uint32_t> ids;
  std::vector<Shard> shards;  ///< as they are visited
};

/// Draws a sequence of the shards of `stored`, sample ids as they are stored, and a sequence of the
/// samples within each.
ShardOrder shard_order(std::span<const uint32_t> stored, uint64_t seed, uint32_t epoch);

}  // namespace tw
