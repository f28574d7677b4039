#include "data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/core/rng.h"

namespace tw {

std::vector<uint32_t> shuffled_order(size_t n, uint64_t seed, uint32_t epoch) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  const Philox random(seed, Purpose::shuffle, epoch);
  for (size_t i = n; i > 1; --i)  // Fisher-Yates
    std::swap(order[i - 1], order[below(random(i)[0], static_cast<uint32_t>(i))]);
  return order;
}

ShardOrder shard_order(std::span<const uint32_t> stored, uint64_t seed, uint32_t epoch) {
  const Philox random(seed, Purpose::shuffle, epoch);
  ShardOrder order;
  auto& ids = order.ids;
  ids.reserve(stored.size());
  for (const uint32_t shard : shuffled_order((stored.size() + kShard - 1) / kShard, seed, epoch)) {
    const size_t begin = shard * kShard, end = std::min(begin + kShard, stored.size());
    const size_t first = ids.size();
    order.shards.push_back({first, begin, end});
    ids.insert(ids.end(), stored.begin() + static_cast<ptrdiff_t>(begin),
               stored.begin() + static_cast<ptrdiff_t>(end));
    for (size_t i = end - begin; i > 1; --i) {
      const uint64_t draw = (uint64_t{1} << 32) + first + i;  // unused by the shuffle of the shards
      std::swap(ids[first + i - 1], ids[first + below(random(draw)[0], static_cast<uint32_t>(i))]);
    }
  }
  return order;
}

}  // namespace tw
