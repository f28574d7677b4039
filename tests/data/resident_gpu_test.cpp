// Batches made on the GPU are byte for byte those of the loader.
#include <gtest/gtest.h>

#include "data/loader.h"
#include "data/resident.h"
#include "data/wrappers.h"
#include "tests/support/data.h"
#include "tests/support/owned_tensor.h"

namespace tw {
namespace {

using test::CountingDataset, test::OwnedTensor;

template <class T>
std::vector<double> values(const Tensor& host) {
  const auto elements = host.as<T>();
  return {elements.begin(), elements.end()};
}

TEST(ResidentData, MakesTheBatchesOfTheLoader) {
  constexpr int64_t kBatch = 7;
  constexpr uint64_t kSeed = 5;
  for (const Shape image : {Shape{32, 32, 3}, Shape{9, 6, 1}}) {
    const auto data = crop_flip(std::make_shared<CountingDataset>(40, image));
    Loader loader(data, {.batch = kBatch, .seed = kSeed, .threads = 0});
    Context ctx(test::device());
    const auto resident = ResidentData::create(ctx, *data);
    const OwnedTensor images({kBatch, image[0], image[1], image[2]}, DType::u8);
    const OwnedTensor labels({kBatch}, DType::i32);
    for (const uint32_t epoch : {0u, 3u})
      for (const int64_t first : {0, 2}) {
        loader.start(epoch, first);
        resident->start(shuffled_order(data->size(), kSeed, epoch), kSeed, epoch,
                        static_cast<size_t>(first * kBatch));
        for (int64_t batch = first; batch < loader.batches(); ++batch) {
          SCOPED_TRACE(fmt::format("epoch {} batch {}", epoch, batch));
          const Batch& expected = loader.next();
          resident->next(images, labels);
          EXPECT_EQ(images.get(), values<uint8_t>(expected.images));
          EXPECT_EQ(labels.get(), values<int32_t>(expected.labels));
        }
      }
  }
}

}  // namespace
}  // namespace tw
