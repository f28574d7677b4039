#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>

#include "data/augment.h"
#include "data/wrappers.h"
#include "tests/support/data.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using test::CountingDataset;

struct Copy {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  bool operator==(const Copy&) const = default;
};

Copy copy(const Batch& batch) {
  const auto images = batch.images.as<uint8_t>();
  const auto labels = batch.labels.as<int32_t>();
  return {{images.begin(), images.end()}, {labels.begin(), labels.end()}};
}

std::vector<Copy> read_epoch(Loader& loader, uint32_t epoch, int64_t first = 0) {
  std::vector<Copy> result;
  loader.start(epoch, first);
  for (int64_t b = first; b < loader.batches(); ++b) result.push_back(copy(loader.next()));
  return result;
}

std::vector<Copy> read_epoch(size_t samples, const LoaderConfig& config, uint32_t epoch = 0) {
  Loader loader(std::make_shared<CountingDataset>(samples), config);
  return read_epoch(loader, epoch);
}

std::vector<int32_t> labels(const std::vector<Copy>& batches) {
  std::vector<int32_t> result;
  for (const Copy& b : batches) result.insert(result.end(), b.labels.begin(), b.labels.end());
  return result;
}

TEST(Loader, TrainingReadsEachSampleOnceForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    std::multiset<int32_t> seen;
    int64_t batches = -1;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto mine = read_epoch(1000, {.batch = 8, .rank = rank, .ranks = ranks});
      if (rank == 0) batches = static_cast<int64_t>(mine.size());
      EXPECT_EQ(static_cast<int64_t>(mine.size()), batches);
      for (const int32_t label : labels(mine)) seen.insert(label);
    }
    EXPECT_EQ(batches, 1000 / (8 * ranks));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), batches * 8 * ranks);
    EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), seen.size());
    EXPECT_TRUE(*seen.begin() >= 0 && *seen.rbegin() < 1000);
  }
}

TEST(Loader, FourRanksReadTheSamplesOfOneRankWithFourTimesTheBatch) {
  const auto one = read_epoch(500, {.batch = 32});
  std::vector<std::vector<Copy>> four;
  for (int r = 0; r < 4; ++r) four.push_back(read_epoch(500, {.batch = 8, .rank = r, .ranks = 4}));
  for (size_t step = 0; step < one.size(); ++step) {
    Copy joined;
    for (const auto& rank : four) {
      ASSERT_EQ(rank.size(), one.size());
      const Copy& b = rank[step];
      joined.images.insert(joined.images.end(), b.images.begin(), b.images.end());
      joined.labels.insert(joined.labels.end(), b.labels.begin(), b.labels.end());
    }
    EXPECT_EQ(joined, one[step]) << "step " << step;
  }
}

TEST(Loader, EvaluationReadsByIdAndPadsTheLastBatch) {
  for (const auto& [samples, ranks] : {std::pair{103, 1}, {103, 4}, {96, 4}, {3, 4}}) {
    std::vector<int32_t> seen;
    size_t padding = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto mine = read_epoch(static_cast<size_t>(samples),
                                   {.batch = 8, .rank = rank, .ranks = ranks, .training = false});
      EXPECT_EQ(static_cast<int>(mine.size()), (samples + 8 * ranks - 1) / (8 * ranks));
      for (const Copy& batch : mine)
        for (size_t i = 0; i < batch.labels.size(); ++i) {
          std::vector<uint8_t> expected(3072, 0);
          if (batch.labels[i] < 0) {
            EXPECT_EQ(batch.labels[i], -1);
            ++padding;
          } else {
            seen.push_back(batch.labels[i]);
            CountingDataset(1000).get(static_cast<size_t>(batch.labels[i]), expected);
          }
          ASSERT_EQ(std::memcmp(expected.data(), &batch.images[i * 3072], 3072), 0);
        }
    }
    EXPECT_TRUE(ranks > 1 || std::is_sorted(seen.begin(), seen.end()));
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(static_cast<int>(seen.size()), samples);
    for (int i = 0; i < samples; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
    EXPECT_EQ((seen.size() + padding) % static_cast<size_t>(8 * ranks), 0u);
  }
}

TEST(Loader, AnyNumberOfThreadsGivesTheSameBytes) {
  const auto expected = read_epoch(400, {.batch = 16, .threads = 0}, 3);
  for (const int threads : {1, 2, 5})
    for (const int prefetch : {1, 2, 4, 40}) {
      Loader loader(std::make_shared<CountingDataset>(400),
                    {.batch = 16, .threads = threads, .prefetch = prefetch});
      EXPECT_EQ(read_epoch(loader, 3), expected) << threads << " threads, prefetch " << prefetch;
    }
}

TEST(Loader, StartInTheMiddleGivesTheRestOfTheEpoch) {
  const auto whole = read_epoch(400, {.batch = 16}, 2);
  for (const int threads : {0, 2})
    for (const int64_t first : {0, 1, 7, 24, 25}) {
      Loader loader(std::make_shared<CountingDataset>(400), {.batch = 16, .threads = threads});
      const auto rest = read_epoch(loader, 2, first);
      EXPECT_EQ(rest, std::vector<Copy>(whole.begin() + first, whole.end()));
    }
}

TEST(Loader, StartCanInterruptAnEpoch) {
  const auto second = read_epoch(400, {.batch = 16}, 2);
  for (const int threads : {0, 1, 3}) {
    Loader loader(std::make_shared<CountingDataset>(400), {.batch = 16, .threads = threads});
    for (int round = 0; round < 50; ++round) {
      loader.start(1, round % 5);
      for (int b = 0; b < round % 4; ++b) loader.next();
    }
    EXPECT_EQ(read_epoch(loader, 2), second);
  }
}

TEST(Loader, ABatchStaysValidAfterStart) {
  Loader loader(std::make_shared<CountingDataset>(400), {.batch = 16, .threads = 2});
  loader.start(0);
  const Batch& held = loader.next();
  const Copy before = copy(held);
  loader.start(1);
  for (int wait = 0; wait < 20; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(copy(held), before);
  }
}

TEST(Loader, SeedAndEpochChangeTheOrder) {
  const auto base = labels(read_epoch(400, {.batch = 16}));
  EXPECT_EQ(labels(read_epoch(400, {.batch = 16})), base);
  EXPECT_NE(labels(read_epoch(400, {.batch = 16}, 1)), base);
  EXPECT_NE(labels(read_epoch(400, {.batch = 16, .seed = 2})), base);
  EXPECT_FALSE(std::is_sorted(base.begin(), base.end()));
}

TEST(Loader, TheFirstSampleIsUniformlyDistributed) {
  // 20 samples, 4000 epochs: each leads 200 times, standard deviation 14
  std::vector<int> leads(20);
  Loader loader(std::make_shared<CountingDataset>(20, Shape{1, 1, 1}), {.batch = 20, .threads = 0});
  for (uint32_t epoch = 0; epoch < 4000; ++epoch) {
    loader.start(epoch);
    ++leads[static_cast<size_t>(loader.next().labels.as<int32_t>()[0])];
  }
  for (const int count : leads) EXPECT_NEAR(count, 200, 70);
}

TEST(Loader, TrainingAugmentsBySampleId) {
  const CountingDataset set(64);
  std::vector<uint8_t> raw(3072), expected(3072);
  Loader loader(crop_flip(std::make_shared<CountingDataset>(64)), {.batch = 16, .seed = 9});
  for (const Copy& batch : read_epoch(loader, 5))
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      const auto id = static_cast<size_t>(batch.labels[i]);
      set.get(id, raw);
      augment_crop_flip(raw, set.image, 9, 5, id, expected);
      EXPECT_EQ(std::memcmp(expected.data(), &batch.images[i * 3072], 3072), 0) << id;
    }
}

TEST(Loader, TooFewSamplesForOneBatchIsAUserError) {
  const auto set = std::make_shared<CountingDataset>(100);
  EXPECT_EQ(test::error_text<UserError>([&] { Loader(set, {.batch = 32, .ranks = 4}); }),
            "[loader] 100 images are too few for one batch of 32 on each of 4 ranks");
  EXPECT_NO_THROW(Loader(set, {.batch = 25, .ranks = 4}));
  EXPECT_NO_THROW(Loader(set, {.batch = 32, .ranks = 4, .training = false}));
  EXPECT_EQ(test::error_text<UserError>([&] { Loader(set, {.batch = 0}); }),
            "[loader] batch size is 0, expected at least 1");
}

TEST(Loader, NextWithoutABatchLeftIsALogicError) {
  Loader loader(std::make_shared<CountingDataset>(32), {.batch = 16});
  EXPECT_THROW(loader.next(), std::logic_error);
  EXPECT_THROW(loader.start(0, 3), std::logic_error);
  read_epoch(loader, 0);
  EXPECT_THROW(loader.next(), std::logic_error);
}

/// Sample 5 cannot be read while `broken`.
class BrokenDataset : public CountingDataset {
 public:
  using CountingDataset::CountingDataset;
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    check(i != 5 || !broken, "[broken] sample {} is damaged", i);
    return CountingDataset::get(i, pixels);
  }
  std::atomic<bool> broken{true};
};

TEST(Loader, NextThrowsTheErrorOfAPrefetchThread) {
  for (const int threads : {0, 1, 3}) {
    const auto set = std::make_shared<BrokenDataset>(64);
    Loader loader(set, {.batch = 4, .training = false, .threads = threads});
    loader.start(0);
    loader.next();
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(test::error_text<UserError>([&] { loader.next(); }),
                "[broken] sample 5 is damaged");
    set->broken = false;
    EXPECT_EQ(read_epoch(loader, 0), read_epoch(64, {.batch = 4, .training = false}));
  }
}

TEST(Loader, CanBeDestroyedAtAnyTime) {
  const auto set = std::make_shared<CountingDataset>(400);
  for (int round = 0; round < 100; ++round) {
    Loader loader(set, {.batch = 16, .threads = 1 + round % 3, .prefetch = 1 + round % 4});
    if (round % 5 != 0) loader.start(0);
    for (int b = 0; round % 5 != 0 && b < round % 7; ++b) loader.next();
  }
}

}  // namespace
}  // namespace tw
