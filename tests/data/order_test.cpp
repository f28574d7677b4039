// Orders by shards, and the loader's use of them.
#include "data/order.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "tests/support/data.h"

namespace tw {
namespace {

using test::CountingDataset;

/// A stored order of the ids 0 to n-1: position p holds (p * 7 + 3) mod n.
std::vector<uint32_t> stored_ids(size_t n) {
  std::vector<uint32_t> stored(n);
  for (size_t p = 0; p < n; ++p) stored[p] = static_cast<uint32_t>((p * 7 + 3) % n);
  return stored;
}

constexpr size_t kSamples = 5 * kShard + 100;

TEST(ShardOrder, ReadsEverySampleOnceShardByShard) {
  const auto stored = stored_ids(kSamples);
  const ShardOrder order = shard_order(stored, 1, 0);
  ASSERT_EQ(order.ids.size(), kSamples);
  ASSERT_EQ(order.shards.size(), 6u);
  std::vector<size_t> begins;
  size_t first = 0;
  for (const auto& shard : order.shards) {
    EXPECT_EQ(shard.first, first) << "shards are consecutive";
    EXPECT_EQ(shard.begin % kShard, 0u);
    EXPECT_EQ(shard.end, std::min(shard.begin + kShard, kSamples));
    const size_t length = shard.end - shard.begin;
    ASSERT_LE(first + length, kSamples);
    std::vector<uint32_t> visited(&order.ids[first], &order.ids[first] + length);
    std::vector<uint32_t> expected(&stored[shard.begin], &stored[shard.begin] + length);
    EXPECT_NE(visited, expected) << "samples within a shard are shuffled";
    std::ranges::sort(visited);
    std::ranges::sort(expected);
    EXPECT_EQ(visited, expected);
    begins.push_back(shard.begin);
    first += length;
  }
  EXPECT_EQ(first, kSamples);
  EXPECT_FALSE(std::ranges::is_sorted(begins)) << "shards are shuffled";
  std::ranges::sort(begins);
  for (size_t i = 0; i < begins.size(); ++i) EXPECT_EQ(begins[i], i * kShard);
}

TEST(ShardOrder, DependsOnSeedAndEpoch) {
  const auto stored = stored_ids(kSamples);
  const auto sequence = [&](uint64_t seed, uint32_t epoch) {
    std::vector<size_t> begins;
    for (const auto& shard : shard_order(stored, seed, epoch).shards) begins.push_back(shard.begin);
    return begins;
  };
  const auto ids = [&](uint64_t seed, uint32_t epoch) {
    return shard_order(stored, seed, epoch).ids;
  };
  EXPECT_EQ(ids(1, 0), ids(1, 0));
  EXPECT_NE(ids(1, 1), ids(1, 0));
  EXPECT_NE(ids(2, 0), ids(1, 0));
  EXPECT_NE(sequence(1, 1), sequence(1, 0));
  EXPECT_NE(sequence(2, 0), sequence(1, 0));
  // a single shard, so that only the order within it can differ
  const auto within = [](uint64_t seed, uint32_t epoch) {
    return shard_order(stored_ids(kShard), seed, epoch).ids;
  };
  EXPECT_NE(within(1, 1), within(1, 0));
  EXPECT_NE(within(2, 0), within(1, 0));
}

TEST(ShardOrder, TheFirstShardIsUniformlyDistributed) {
  // six shards, 1200 epochs: each leads 200 times, standard deviation 13
  const auto stored = stored_ids(kSamples);
  std::vector<int> leads(6);
  for (uint32_t epoch = 0; epoch < 1200; ++epoch)
    ++leads[shard_order(stored, 1, epoch).shards.front().begin / kShard];
  for (const int count : leads) EXPECT_NEAR(count, 200, 65);
}

/// Its stored order is not that of the ids; records the calls of will_need().
class StoredDataset : public CountingDataset, public StorageLayout {
 public:
  explicit StoredDataset(size_t n) : CountingDataset(n, {1, 1, 1}), stored_(stored_ids(n)) {}
  const StorageLayout* storage() const override { return this; }
  std::span<const uint32_t> order() const override { return stored_; }
  void will_need(size_t begin, size_t end) const override {
    const std::lock_guard lock(mutex_);
    announced_.emplace_back(begin, end);
  }
  std::vector<std::pair<size_t, size_t>> announced() const {
    const std::lock_guard lock(mutex_);
    return announced_;
  }

 private:
  std::vector<uint32_t> stored_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<size_t, size_t>> announced_;
};

LoaderConfig by_shards(int threads, int rank = 0, int ranks = 1) {
  return {.batch = 32, .rank = rank, .ranks = ranks, .threads = threads, .shuffle_shards = true};
}

TEST(ShardOrder, IsTheOrderOfTheLoader) {
  const auto data = std::make_shared<StoredDataset>(kSamples);
  const auto ids = shard_order(data->order(), 1, 2).ids;
  for (int rank = 0; rank < 2; ++rank) {
    Loader loader(data, by_shards(2, rank, 2));
    loader.start(2);
    for (int64_t b = 0; b < loader.batches(); ++b) {
      const auto labels = loader.next().labels.as<int32_t>();
      for (size_t i = 0; i < 32; ++i)
        ASSERT_EQ(static_cast<uint32_t>(labels[i]),
                  ids[static_cast<size_t>(b * 64 + rank * 32) + i]);
    }
  }
}

TEST(ShardOrder, TheLoaderAnnouncesEachShardOneShardAhead) {
  const auto names = [](const ShardOrder& order, size_t begin) {
    std::vector<std::pair<size_t, size_t>> all;
    for (size_t s = begin; s < order.shards.size(); ++s)
      all.emplace_back(order.shards[s].begin, order.shards[s].end);
    return all;
  };
  for (const int threads : {0, 2}) {
    const auto data = std::make_shared<StoredDataset>(kSamples);
    const ShardOrder order = shard_order(data->order(), 1, 0);
    Loader loader(data, by_shards(threads));
    loader.start(0);
    for (int64_t b = 0; b < 10; ++b) loader.next();
    auto expected = names(order, 0);
    EXPECT_EQ(data->announced(), (std::vector{expected[0], expected[1]}))
        << "the shard at hand and the next one";
    for (int64_t b = 10; b < loader.batches(); ++b) loader.next();
    EXPECT_EQ(data->announced(), expected);
    // a resumed run does not announce earlier shards
    const auto resumed = std::make_shared<StoredDataset>(kSamples);
    Loader rest(resumed, by_shards(threads));
    const size_t begin = order.shards[2].first;
    rest.start(0, static_cast<int64_t>(begin / 32 + 1));
    for (int64_t b = static_cast<int64_t>(begin / 32 + 1); b < rest.batches(); ++b) rest.next();
    EXPECT_EQ(resumed->announced(), names(order, 2));
  }
  // a full shuffle announces nothing
  const auto data = std::make_shared<StoredDataset>(kSamples);
  Loader loader(data, {.batch = 32});
  loader.start(0);
  for (int64_t b = 0; b < loader.batches(); ++b) loader.next();
  EXPECT_TRUE(data->announced().empty());
}

}  // namespace
}  // namespace tw
