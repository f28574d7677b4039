// Which shapes the CPU's own convolutions take.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/core/cpu_features.h"
#include "engine/core/instruction_set.h"
#include "engine/ops/cpu/conv2d.h"

namespace tw::test {
namespace {

using ops::Conv2dShape;

constexpr Conv2dShape kLayer{
    .batch = 32, .height = 8, .width = 8, .in_channels = 64, .out_channels = 64};

template <class Change>
Conv2dShape with(const Change& change) {
  Conv2dShape shape = kLayer;
  change(shape);
  return shape;
}

TEST(Conv2dChoice, TheDenseProductTakesImagesOfMostlyPadding) {
  const auto dense = [](int64_t height, int64_t width, int64_t kernel) {
    return ops::suits_dense_conv2d(with([&](Conv2dShape& s) {
      s.height = height;
      s.width = width;
      s.kernel = kernel;
    }));
  };
  EXPECT_TRUE(dense(1, 1, 3));
  EXPECT_TRUE(dense(2, 2, 3));
  EXPECT_TRUE(dense(3, 4, 5));
  EXPECT_FALSE(dense(2, 3, 3));
  EXPECT_FALSE(dense(1, 1, 1));
}

TEST(Conv2dChoice, WinogradTakesTilesOf16Channels) {
  if (instruction_set() == InstructionSet::baseline)
    GTEST_SKIP() << "no fused multiply-add"
                 << (std::getenv("THINWIRE_CPU") ? " with THINWIRE_CPU" : "");
  const auto winograd = [](const auto& change) { return ops::suits_winograd_conv2d(with(change)); };
  EXPECT_TRUE(winograd([](Conv2dShape&) {}));
  EXPECT_TRUE(winograd([](Conv2dShape& s) { s.in_channels = 16, s.out_channels = 256; }));
  EXPECT_TRUE(winograd([](Conv2dShape& s) { s.padding = 2; }));
  // oneDNN has Winograd for more channels on CPUs with AVX-512
  EXPECT_EQ(winograd([](Conv2dShape& s) { s.out_channels = 272; }), !cpu_has_avx512());
  EXPECT_EQ(winograd([](Conv2dShape& s) { s.in_channels = 512; }), !cpu_has_avx512());
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.in_channels = 528; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.in_channels = 3; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.out_channels = 24; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.kernel = 1, s.padding = 0; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.kernel = 5, s.padding = 2; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.stride = 2; }));
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.height = 3; }));
  EXPECT_TRUE(winograd([](Conv2dShape& s) { s.batch = 4; }));   // 16 tiles
  EXPECT_FALSE(winograd([](Conv2dShape& s) { s.batch = 3; }));  // 12 tiles
}

TEST(Conv2dChoice, WinogradTakesBf16OnlyWithoutAmx) {
  EXPECT_EQ(ops::suits_winograd_conv2d(with([](Conv2dShape& s) { s.dtype = DType::bf16; })),
            instruction_set() != InstructionSet::baseline && !cpu_has_amx());
}

}  // namespace
}  // namespace tw::test
