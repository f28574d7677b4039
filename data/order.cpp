#include "data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tw {

void shuffle(std::span<uint32_t> ids, const Philox& random, uint64_t first_draw) {
  for (size_t i = ids.size(); i > 1; --i)  // Fisher-Yates
    std::swap(ids[i - 1], ids[below(random(first_draw + i)[0], static_cast<uint32_t>(i))]);
}

std::vector<uint32_t> shuffled_order(size_t n, uint64_t seed, uint32_t epoch) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order, Philox(seed, Purpose::shuffle, epoch));
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
    // draws that the shuffle of the shards does not use
    shuffle(std::span(ids).subspan(first), random, (uint64_t{1} << 32) + first);
  }
  return order;
}

}  // namespace tw
