// bfloat16 rounding, and the names and sizes of element types.
#include "engine/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tw::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint16_t rounded(float value) { return bf16(value).bits; }
uint16_t rounded_bits(uint32_t bits) { return rounded(std::bit_cast<float>(bits)); }

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(name(DType::f32), "f32");
  EXPECT_EQ(name(DType::bf16), "bf16");
  EXPECT_EQ(name(DType::i32), "i32");
  EXPECT_EQ(name(DType::u8), "u8");
  EXPECT_EQ(size_of(DType::f32), sizeof(float));
  EXPECT_EQ(size_of(DType::bf16), sizeof(bf16));
  EXPECT_EQ(size_of(DType::i32), sizeof(int32_t));
  EXPECT_EQ(size_of(DType::u8), sizeof(uint8_t));
  EXPECT_EQ(name(Device::cpu), "cpu");
  EXPECT_EQ(name(Device::cuda), "cuda");
}

TEST(Bf16, EveryValueRoundTripsThroughFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    bf16 value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide(value);
    if (std::isnan(wide))
      ASSERT_TRUE(std::isnan(float(bf16(wide)))) << bits;
    else
      ASSERT_EQ(rounded(wide), bits);
  }
}

TEST(Bf16, TiesGoToEven) {
  EXPECT_EQ(rounded_bits(0x3f808000), 0x3f80);  // half way above an even number: down
  EXPECT_EQ(rounded_bits(0x3f818000), 0x3f82);  // half way above an odd one: up
  EXPECT_EQ(rounded_bits(0xbf808000), 0xbf80);
  EXPECT_EQ(rounded_bits(0xbf818000), 0xbf82);
}

TEST(Bf16, OtherValuesGoToTheNearest) {
  EXPECT_EQ(rounded_bits(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded_bits(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded_bits(0x3f817fff), 0x3f81);
  EXPECT_EQ(rounded_bits(0x3fffffff), 0x4000);  // the carry reaches the exponent
}

TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(float(bf16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(float(bf16(-std::numeric_limits<float>::max())), -kInfinity);
  EXPECT_EQ(rounded_bits(0x7f7f7fff), 0x7f7f);  // just below half way: the largest finite number
  EXPECT_EQ(float(bf16(kInfinity)), kInfinity);
  EXPECT_EQ(float(bf16(-kInfinity)), -kInfinity);
}

TEST(Bf16, NanStaysNanAndKeepsItsSign) {
  // payload in the lower half alone (truncation gives infinity), and all ones (rounding gives zero)
  for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
    const float wide(bf16(std::bit_cast<float>(bits)));
    EXPECT_TRUE(std::isnan(wide)) << std::hex << bits;
    EXPECT_EQ(std::signbit(wide), (bits >> 31) != 0) << std::hex << bits;
  }
}

TEST(Bf16, KeepsSignedZeroAndSubnormals) {
  EXPECT_EQ(rounded(0.0f), 0x0000);
  EXPECT_EQ(rounded(-0.0f), 0x8000);
  EXPECT_EQ(rounded_bits(0x00010000), 0x0001);  // smallest subnormal of bf16
  EXPECT_EQ(rounded_bits(0x00008000), 0x0000);  // half of it: tie to even
  EXPECT_EQ(rounded_bits(0x00008001), 0x0001);
}

}  // namespace
}  // namespace tw::test
