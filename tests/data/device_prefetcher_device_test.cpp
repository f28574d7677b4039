// Micro-batches are those of the loader's batches, with and without working ahead.
#include "data/device_prefetcher.h"
#include "tests/support/data.h"
#include "tests/support/owned_tensor.h"

namespace tw {
namespace {

using test::CountingDataset, test::OwnedTensor;

constexpr int64_t kBatch = 6;
Shape image_shape() { return {9, 7, 3}; }

template <class T>
std::vector<double> values(const Tensor& host) {
  const auto elements = host.as<T>();
  return {elements.begin(), elements.end()};
}

/// The last image cannot be read.
class Damaged : public CountingDataset {
 public:
  using CountingDataset::CountingDataset;
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    check(i + 1 < size(), "[test] image {} is damaged", i);
    return CountingDataset::get(i, pixels);
  }
};

LoaderConfig config(int threads) {
  return {.batch = kBatch, .seed = 5, .threads = threads, .device = test::device()};
}

struct Input {
  explicit Input(int64_t parts)
      : images({kBatch / parts, image_shape()[0], image_shape()[1], image_shape()[2]}, DType::u8),
        labels({kBatch / parts}, DType::i32) {}
  OwnedTensor images, labels;
};

/// Parameters: parts, ahead, threads of the loader.
class DevicePrefetcherTest : public ::testing::TestWithParam<std::tuple<int64_t, bool, int>> {};

TEST_P(DevicePrefetcherTest, CopiesTheBatchesOfTheLoader) {
  const auto [parts, ahead, threads] = GetParam();
  const auto data = std::make_shared<CountingDataset>(40, image_shape());
  Loader expected(data, {.batch = kBatch, .seed = 5, .threads = 0}), loader(data, config(threads));
  Context ctx(test::device());
  DevicePrefetcher prefetcher(ctx, loader, parts, ahead);
  Input input(parts);
  // an interrupted epoch, one from its middle, a whole one
  for (const auto& [epoch, first, last] : {std::tuple{0u, 0, 3}, {1u, 2, 6}, {2u, 0, 6}}) {
    expected.start(epoch, first);
    prefetcher.start(epoch, first);
    for (int64_t b = first; b < last; ++b) {
      const Batch& batch = expected.next();
      for (int64_t part = 0; part < parts; ++part) {
        SCOPED_TRACE(fmt::format("epoch {} batch {} part {}", epoch, b, part));
        const int64_t size = kBatch / parts;
        prefetcher.next(input.images, input.labels);
        prefetcher.prefetch();
        const Batch rows{batch.images.rows(part * size, (part + 1) * size),
                         batch.labels.rows(part * size, (part + 1) * size)};
        EXPECT_EQ(input.images.get(), values<uint8_t>(rows.images));
        EXPECT_EQ(input.labels.get(), values<int32_t>(rows.labels));
      }
    }
  }
  EXPECT_GE(prefetcher.waited(), 0);
}

TEST_P(DevicePrefetcherTest, NextThrowsTheErrorOfItsBatch) {
  const auto [parts, ahead, threads] = GetParam();
  const auto data = std::make_shared<Damaged>(12, image_shape());
  LoaderConfig in_order = config(threads);
  in_order.training = false;  // the second batch has the damaged image
  Loader loader(data, in_order);
  Context ctx(test::device());
  DevicePrefetcher prefetcher(ctx, loader, parts, ahead);
  Input input(parts);
  for (int again = 0; again < 2; ++again) {
    prefetcher.start(0);
    for (int64_t part = 0; part < parts; ++part) {
      prefetcher.next(input.images, input.labels);
      prefetcher.prefetch();
    }
    EXPECT_THROW(prefetcher.next(input.images, input.labels), UserError);
  }
}

TEST_P(DevicePrefetcherTest, PrefetchStopsAtTheEndOfTheEpoch) {
  const auto [parts, ahead, threads] = GetParam();
  Loader loader(std::make_shared<CountingDataset>(kBatch, image_shape()), config(threads));
  Context ctx(test::device());
  DevicePrefetcher prefetcher(ctx, loader, parts, ahead);
  Input input(parts);
  prefetcher.start(0);
  for (int64_t part = 0; part < parts; ++part) {
    prefetcher.next(input.images, input.labels);
    EXPECT_NO_THROW(prefetcher.prefetch());
  }
  EXPECT_THROW(prefetcher.next(input.images, input.labels), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(All, DevicePrefetcherTest,
                         ::testing::Combine(::testing::Values<int64_t>(1, 3), ::testing::Bool(),
                                            ::testing::Values(0, 2)));

}  // namespace
}  // namespace tw
