#include "data/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace tw {
namespace {

/// The reference crop, from its definition.
std::vector<uint8_t> crop(const std::vector<uint8_t>& in, Shape image, int dy, int dx, bool flip) {
  std::vector<uint8_t> out(in.size(), 0);
  const int height = static_cast<int>(image[0]), width = static_cast<int>(image[1]);
  const int channels = static_cast<int>(image[2]);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int from_y = y + dy - 4, from_x = (flip ? width - 1 - x : x) + dx - 4;
      if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) continue;
      for (int c = 0; c < channels; ++c)
        out[(y * width + x) * channels + c] = in[(from_y * width + from_x) * channels + c];
    }
  return out;
}

class Augment : public ::testing::TestWithParam<Shape> {};

TEST_P(Augment, DrawsAll162CropsUniformly) {
  const Shape image = GetParam();
  std::vector<uint8_t> in(static_cast<size_t>(image.numel()));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(1 + i * 37 % 251);

  const auto key = [](const std::vector<uint8_t>& v) { return std::string(v.begin(), v.end()); };
  std::map<std::string, std::pair<int, bool>> known;
  for (int offset = 0; offset < 81; ++offset)
    for (const bool flip : {false, true})
      known[key(crop(in, image, offset / 9, offset % 9, flip))] = {offset, flip};
  ASSERT_EQ(known.size(), 162u);

  constexpr int draws = 16'200;
  std::vector<int> offsets(81);
  int flips = 0;
  std::vector<uint8_t> out(in.size(), 77);
  for (uint64_t id = 0; id < draws; ++id) {
    augment_crop_flip(in, image, 5, 2, id, out);
    const auto found = known.find(key(out));
    ASSERT_NE(found, known.end()) << "id " << id << " is no crop of the image";
    ++offsets[static_cast<size_t>(found->second.first)];
    flips += found->second.second;
  }
  // five standard deviations: sqrt(16200) / 2 = 64 and sqrt(200) = 14
  EXPECT_NEAR(flips, draws / 2, 320);
  for (const int count : offsets) EXPECT_NEAR(count, draws / 81, 70);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Augment,
                         ::testing::Values(Shape{32, 32, 3}, Shape{9, 13, 1}, Shape{16, 8, 4}));

TEST(AugmentKey, CropsDependOnSeedEpochAndId) {
  const Shape image{32, 32, 3};
  std::vector<uint8_t> in(3072), a(3072), b(3072);
  std::iota(in.begin(), in.end(), uint8_t{0});
  const auto differing = [&](auto draw) {
    int count = 0;
    for (uint64_t id = 0; id < 100; ++id) {
      augment_crop_flip(in, image, 1, 1, id, a);
      draw(id);
      count += a != b;
    }
    return count;
  };
  EXPECT_EQ(differing([&](uint64_t id) { augment_crop_flip(in, image, 1, 1, id, b); }), 0);
  EXPECT_GT(differing([&](uint64_t id) { augment_crop_flip(in, image, 2, 1, id, b); }), 90);
  EXPECT_GT(differing([&](uint64_t id) { augment_crop_flip(in, image, 1, 2, id, b); }), 90);
  EXPECT_GT(differing([&](uint64_t id) { augment_crop_flip(in, image, 1, 1, id + 1, b); }), 90);
}

TEST(AugmentKey, ImagesSmallerThanThePadWork) {
  const Shape image{2, 3, 1};
  std::vector<uint8_t> in{1, 2, 3, 4, 5, 6}, out(6);
  bool black = false;
  for (uint64_t id = 0; id < 500; ++id) {
    augment_crop_flip(in, image, 1, 1, id, out);
    black = black || out == std::vector<uint8_t>(6, 0);
  }
  EXPECT_TRUE(black);
}

}  // namespace
}  // namespace tw
