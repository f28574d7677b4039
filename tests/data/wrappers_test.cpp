#include "data/wrappers.h"

#include "data/augment.h"
#include "tests/support/data.h"

namespace tw {
namespace {

using test::CountingDataset;

TEST(Subset, HoldsTheSamplesOfItsRange) {
  const auto whole = std::make_shared<CountingDataset>(10, Shape{2, 2, 1});
  const auto part = subset(whole, 3, 7);
  std::vector<uint8_t> a(4), b(4);
  ASSERT_EQ(part->size(), 4u);
  EXPECT_EQ(part->image, whole->image);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(part->get(i, a), whole->get(3 + i, b));
    EXPECT_EQ(a, b);
    EXPECT_EQ(part->get_augmented(i, 1, 0, a), whole->get(3 + i, b));
    EXPECT_EQ(a, b);
  }
  EXPECT_THROW(part->get(4, a), std::logic_error);
  EXPECT_THROW(part->get_augmented(4, 1, 0, a), std::logic_error);
  EXPECT_THROW(subset(whole, 7, 3), std::logic_error);
  EXPECT_THROW(subset(whole, 3, 11), std::logic_error);
}

TEST(CropFlip, AugmentsBySeedEpochAndSampleId) {
  const auto plain = std::make_shared<CountingDataset>(5);
  const auto augmented = crop_flip(plain);
  EXPECT_TRUE(augmented->supports_resident());
  EXPECT_FALSE(plain->supports_resident());
  std::vector<uint8_t> whole(3072), expected(3072), pixels(3072);
  for (size_t i = 0; i < 5; ++i) {
    plain->get(i, whole);
    augment_crop_flip(whole, plain->image, 9, 2, i, expected);
    EXPECT_EQ(augmented->get_augmented(i, 9, 2, pixels), static_cast<int32_t>(i));
    EXPECT_EQ(pixels, expected);
    EXPECT_EQ(augmented->get(i, pixels), static_cast<int32_t>(i));
    EXPECT_EQ(pixels, whole) << "get() does not augment";
  }
}

/// Sample 2 cannot be read.
class OneBad : public CountingDataset {
 public:
  OneBad() : CountingDataset(4, {2, 2, 1}) {}
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    if (i == 2) throw BadSampleError("test", "sample 2", "damaged");
    return CountingDataset::get(i, pixels);
  }
};

TEST(SkipBad, ReplacesABadSampleByABlackImageLabelledMinusOne) {
  const auto log = std::make_shared<SkipLog>();
  const auto data = skip_bad(std::make_shared<OneBad>(), log);
  std::vector<uint8_t> pixels(4), expected(4);
  EXPECT_EQ(data->get(1, pixels), OneBad().get(1, expected));
  EXPECT_EQ(pixels, expected);
  EXPECT_TRUE(log->take().empty());
  for (int again = 0; again < 2; ++again) {
    std::ranges::fill(pixels, uint8_t{7});
    EXPECT_EQ(data->get(2, pixels), -1);
    EXPECT_EQ(pixels, std::vector<uint8_t>(4, 0));
    std::ranges::fill(pixels, uint8_t{7});
    EXPECT_EQ(data->get_augmented(2, 1, 0, pixels), -1);
    EXPECT_EQ(pixels, std::vector<uint8_t>(4, 0));
  }
  EXPECT_EQ(log->take(), std::vector<std::string>{"sample 2: damaged"}) << "once a sample";
  EXPECT_TRUE(log->take().empty());
}

TEST(BadSampleError, NamesDataSetSampleAndReason) {
  const BadSampleError error("test", "a.jpg", "cut short");
  EXPECT_STREQ(error.what(), "[test] a.jpg: cut short");
  EXPECT_EQ(error.description(), "a.jpg: cut short");
}

}  // namespace
}  // namespace tw
