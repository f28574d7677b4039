#include <gtest/gtest.h>

#include <limits>

#include "engine/core/dtype.h"
#include "engine/ops/half.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

constexpr ValueFormat kHalves[] = {ValueFormat::fp16, ValueFormat::bf16};

/// The bytes of a vector.
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> widened(Context& ctx, ValueFormat format, const std::vector<uint16_t>& bits) {
  const auto n = static_cast<int64_t>(bits.size());
  OwnedTensor halves({2 * n}, DType::u8), floats({n}, DType::f32);
  std::vector<std::byte> given = bytes_of(bits);
  halves.set_bits(given);
  ops::widen(ctx, format, {static_cast<const std::byte*>(halves->data), 2 * bits.size()},
             floats.floats());
  const std::vector<std::byte> bytes = floats.bits();
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<uint16_t> narrowed(Context& ctx, ValueFormat format, const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  OwnedTensor floats({n}, DType::f32), halves({2 * n}, DType::u8);
  std::vector<std::byte> given = bytes_of(values);
  floats.set_bits(given);
  ops::narrow(ctx, format, floats.floats(),
              {static_cast<std::byte*>(halves->data), 2 * values.size()});
  const std::vector<std::byte> bytes = halves.bits();
  std::vector<uint16_t> bits(values.size());
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  return bits;
}

TEST(Half, EveryValueSurvivesWideningAndNarrowing) {
  Context ctx(device(), 2);
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const ValueFormat format : kHalves) {
    const std::vector<float> values = widened(ctx, format, all);
    const std::vector<uint16_t> again = narrowed(ctx, format, values);
    for (size_t i = 0; i < all.size(); ++i)
      if (std::isnan(values[i]))
        EXPECT_TRUE(std::isnan(widened(ctx, format, {again[i]})[0])) << name(format) << " " << i;
      else
        EXPECT_EQ(again[i], all[i]) << name(format) << " " << values[i];
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  Context ctx(device(), 2);
  const float most = std::numeric_limits<float>::max();
  std::vector<float> values{
      0.0f,      -0.0f,     1.0f,        1 + 0x1p-11f,    1 + 3 * 0x1p-11f, 65504.0f, 65519.99f,
      65520.0f,  -65520.0f, most,        0x1p-14f,        0x1p-24f,         0x1p-25f, 0x1.8p-25f,
      0x1p-149f, -0x1p-26f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f, INFINITY,         -INFINITY};
  std::vector<double> normal = normal_values(100'003, 3);
  for (size_t i = 0; i < normal.size(); ++i)  // from subnormal to infinite in fp16
    values.push_back(std::ldexp(static_cast<float>(normal[i]), static_cast<int>(i % 50) - 30));
  const std::vector<uint16_t> as_fp16 = narrowed(ctx, ValueFormat::fp16, values);
  const std::vector<uint16_t> as_bf16 = narrowed(ctx, ValueFormat::bf16, values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(as_fp16[i], fp16(values[i]).bits) << values[i];
    EXPECT_EQ(as_bf16[i], bf16(values[i]).bits) << values[i];
  }
  EXPECT_EQ(as_fp16[3], as_fp16[2]) << "a tie, to even";
  EXPECT_EQ(as_fp16[4], as_fp16[2] + 2) << "a tie, to even";
  EXPECT_EQ(as_fp16[7], 0x7c00) << "infinite";
}

}  // namespace
}  // namespace tw::test
