#include "data/wrappers.h"

#include "data/augment.h"
#include "tests/support/data.h"
#include "tests/support/error_text.h"

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

TEST(EveryNth, HoldsOutAtEvenDistances) {
  const auto whole = std::make_shared<CountingDataset>(10, Shape{2, 2, 1});
  const auto held_out = every_nth(whole, 3, true), rest = every_nth(whole, 3, false);
  std::vector<uint8_t> a(4), b(4);
  const auto expect_samples = [&](const Dataset& part, const std::vector<size_t>& ids) {
    ASSERT_EQ(part.size(), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(part.get(i, a), whole->get(ids[i], b));
      EXPECT_EQ(a, b);
    }
  };
  expect_samples(*held_out, {3, 6, 9});
  expect_samples(*rest, {0, 1, 2, 4, 5, 7, 8});
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
    if (i == 2) throw BadSampleError("test", "a class", "sample 2", "damaged");
    return CountingDataset::get(i, pixels);
  }
};

/// Every sample but number `valid_` cannot be read.
class AllButOneBad : public CountingDataset {
 public:
  explicit AllButOneBad(size_t valid) : CountingDataset(1000, {2, 2, 1}), valid_(valid) {}
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    if (i != valid_) throw BadSampleError("test", "a class", "a sample", "damaged");
    return CountingDataset::get(i, pixels);
  }

 private:
  size_t valid_;
};

std::vector<std::string> descriptions(SkipLog& log) {
  std::vector<std::string> all;
  for (const SkipLog::Entry& entry : log.take())
    all.push_back(entry.class_name + "/" + entry.description);
  return all;
}

TEST(SkipBad, LeavesABadSampleOutOfValidation) {
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
  }
  EXPECT_EQ(descriptions(*log), std::vector<std::string>{"a class/sample 2: damaged"})
      << "once a sample";
  EXPECT_TRUE(log->take().empty());
}

TEST(SkipBad, TrainsOnAnotherSampleInPlaceOfABadOne) {
  const auto log = std::make_shared<SkipLog>();
  const auto data = skip_bad(std::make_shared<OneBad>(), log);
  std::vector<uint8_t> pixels(4), expected(4);
  std::vector<int> drawn(4);
  constexpr uint32_t kEpochs = 3000;
  for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const int32_t label = data->get_augmented(2, 7, epoch, pixels);
    ASSERT_TRUE(label >= 0 && label < 4);
    ++drawn[static_cast<size_t>(label)];
    EXPECT_EQ(OneBad().get(static_cast<size_t>(label), expected), label);
    EXPECT_EQ(pixels, expected);
    EXPECT_EQ(data->get_augmented(2, 7, epoch, pixels), label) << "the same draw again";
    EXPECT_EQ(data->get_augmented(1, 7, epoch, pixels), 1) << "valid samples stay";
  }
  EXPECT_EQ(drawn[2], 0);
  // five standard deviations of a binomial distribution around a third
  for (const size_t valid : {0, 1, 3}) EXPECT_NEAR(drawn[valid], kEpochs / 3, 5 * 25.8);
  EXPECT_EQ(descriptions(*log), std::vector<std::string>{"a class/sample 2: damaged"});
}

TEST(SkipBad, FindsTheOnlyValidSampleAndFailsWithoutOne) {
  std::vector<uint8_t> pixels(4);
  for (const size_t valid : {0, 500, 999})
    EXPECT_EQ(skip_bad(std::make_shared<AllButOneBad>(valid), std::make_shared<SkipLog>())
                  ->get_augmented(3, 1, 0, pixels),
              static_cast<int32_t>(valid));
  const auto none = skip_bad(std::make_shared<AllButOneBad>(1000), std::make_shared<SkipLog>());
  EXPECT_EQ(test::error_text<UserError>([&] { none->get_augmented(3, 1, 0, pixels); }),
            "[data] all 1000 training images are damaged");
}

TEST(BadSampleError, NamesDataSetSampleAndReason) {
  const BadSampleError error("test", "n01", "a.jpg", "cut short");
  EXPECT_STREQ(error.what(), "[test] a.jpg: cut short; --bad-images skip goes on without it");
  EXPECT_EQ(error.class_name(), "n01");
  EXPECT_EQ(error.description(), "a.jpg: cut short");
}

}  // namespace
}  // namespace tw
