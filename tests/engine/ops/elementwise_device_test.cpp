// dropout, normalize, relu, subsample_pad and vector ops against their definitions
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engine/core/error.h"
#include "engine/ops/dropout.h"
#include "engine/ops/normalize.h"
#include "engine/ops/relu.h"
#include "engine/ops/subsample_pad.h"
#include "engine/ops/vector.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using Values = std::vector<double>;

/// Longer than one task, and not a multiple of a vector.
constexpr int64_t kLong = (1 << 15) + 77;

class Elementwise : public testing::TestWithParam<std::tuple<DType, int>> {
 protected:
  DType dtype = std::get<0>(GetParam());
  Context ctx{device(), std::get<1>(GetParam())};
  /// What storing does to a value.
  double rounded(double value) const {
    const auto f = static_cast<float>(value);
    return dtype == DType::bf16 ? static_cast<float>(bf16(f)) : f;
  }
};

TEST_P(Elementwise, AddRoundsOnce) {
  const OwnedTensor x = normal_tensor({kLong}, dtype, 1), y = normal_tensor({kLong}, dtype, 2);
  const Values added = x.get(), before = y.get();
  Values expected(before.size());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = rounded(before[i] + added[i]);
  ops::add(ctx, x, y);
  EXPECT_EQ(y.get(), expected);
}

TEST_P(Elementwise, ScaleAndSubtractRoundOnce) {
  const OwnedTensor x = normal_tensor({kLong}, DType::f32, 1);
  const OwnedTensor y = normal_tensor({kLong}, DType::f32, 2);
  const Values first = x.get(), before = y.get();
  Values expected(before.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<float>(before[i] - first[i]);
  ops::subtract(ctx, x.floats(), y.floats());
  EXPECT_EQ(y.get(), expected);
  for (double& value : expected) value = static_cast<float>(value * double{0.999f});
  ops::scale(ctx, y.floats(), 0.999f);
  EXPECT_EQ(y.get(), expected);
}

TEST_P(Elementwise, ConvertRoundsToNearestEven) {
  const OwnedTensor wide = normal_tensor({kLong}, DType::f32, 1);
  const OwnedTensor y({kLong}, dtype), back({kLong}, DType::f32), again({kLong}, dtype);
  ops::convert(ctx, wide, y);
  Values expected = wide.get();
  for (double& value : expected) value = rounded(value);
  EXPECT_EQ(y.get(), expected);
  ops::convert(ctx, y, back);
  EXPECT_EQ(back.get(), expected);
  ops::convert(ctx, y, again);
  EXPECT_EQ(again.bits(), y.bits());
}

/// More tensors than one launch takes on a GPU, among them empty and long ones.
TEST_P(Elementwise, BatchedConversionsMatchSingleOnes) {
  std::vector<OwnedTensor> from, to, expected;
  for (int64_t i = 0; i < 300; ++i) {
    const Shape shape{i == 150 ? kLong : i % 7 * 5};
    from.push_back(normal_tensor(shape, DType::f32, static_cast<uint64_t>(i)));
    to.emplace_back(shape, dtype);
    expected.emplace_back(shape, dtype);
    ops::convert(ctx, from.back(), expected.back());
  }
  ops::Transfers conversions;
  for (size_t i = 0; i < from.size(); ++i) conversions.push_back({from[i], to[i]});
  ops::transfer(ctx, conversions);
  for (size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i].bits(), expected[i].bits()) << i;
}

TEST_P(Elementwise, ReluForwardAndBackward) {
  Values values = normal_values(kLong, 1);
  values[5] = std::nan("");
  values[6] = 0;
  const OwnedTensor x({kLong}, dtype, values), y({kLong}, dtype), dx({kLong}, dtype);
  const OwnedTensor dy = normal_tensor({kLong}, dtype, 2);
  ops::relu_forward(ctx, x, y);
  ops::relu_backward(ctx, y, dy, dx);
  const Values in = x.get(), out = y.get(), gradient = dy.get(), result = dx.get();
  EXPECT_TRUE(std::isnan(out[5]));
  for (size_t i = 0; i < in.size(); ++i) {
    if (i != 5) {
      ASSERT_EQ(out[i], std::max(in[i], 0.0)) << i;
    }
    ASSERT_EQ(result[i], in[i] > 0 ? gradient[i] : 0.0) << i;
  }
  ops::relu_forward(ctx, x, x);
  EXPECT_EQ(x.bits(), y.bits());
  ops::relu_backward(ctx, y, dy, dy);
  EXPECT_EQ(dy.bits(), dx.bits());
}

TEST_P(Elementwise, DropoutFollowsTheDocumentedDraws) {
  const Philox philox(3, Purpose::dropout);
  const float rate = 0.3f;
  const OwnedTensor x({kLong}, dtype, Values(kLong, 2.0)), y({kLong}, dtype);
  ops::dropout(ctx, rate, philox, 11, x, y);
  const Values out = y.get();
  const double kept = rounded(2 / (1 - rate));
  double dropped = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool keep = uniform(philox(11, static_cast<uint32_t>(i / 4))[i % 4]) >= rate;
    ASSERT_EQ(out[i], keep ? kept : 0.0) << i;
    dropped += !keep;
  }
  EXPECT_NEAR(dropped / kLong, rate, 0.01);
  ops::dropout(ctx, rate, philox, 11, x, x);
  EXPECT_EQ(x.bits(), y.bits());

  const OwnedTensor infinite({kLong}, dtype, Values(kLong, HUGE_VAL));
  ops::dropout(ctx, rate, philox, 11, infinite, infinite);
  const Values result = infinite.get();
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(result[i], out[i] > 0 ? HUGE_VAL : 0.0) << i;
}

TEST_P(Elementwise, NormalizeUsesEachChannelsOwnStatistics) {
  for (const int64_t channels : {1, 3, 17, 256}) {
    const Shape shape{3, 5, 31, channels};
    Values bytes(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<double>(i * 37 % 256);
    std::vector<float> mean, deviation;
    for (int64_t c = 0; c < channels; ++c) {
      mean.push_back(0.4f + 0.001f * static_cast<float>(c));
      deviation.push_back(0.2f + 0.01f * static_cast<float>(c));
    }
    Values expected = bytes;
    for (size_t i = 0; i < bytes.size(); ++i)
      expected[i] = (bytes[i] / 255 - mean[i % channels]) / deviation[i % channels];
    const OwnedTensor x(shape, DType::u8, bytes), y(shape, dtype);
    ops::normalize(ctx, x, mean, deviation, y);
    expect_close(y.get(), expected, tolerance(dtype), 1e-6);
  }
}

TEST_P(Elementwise, SubsamplePadForwardAndBackward) {
  for (const int64_t stride : {1, 2})
    for (const int64_t wide : {3, 4, 6}) {
      const Shape shape{2, 5, 6, 3}, out{2, (4 + stride) / stride, (5 + stride) / stride, wide};
      const OwnedTensor x = normal_tensor(shape, dtype, 1), dy = normal_tensor(out, dtype, 2);
      const OwnedTensor y = normal_tensor(out, dtype, 3), dx = normal_tensor(shape, dtype, 4);
      ops::subsample_pad_forward(ctx, stride, x, y);
      ops::subsample_pad_backward(ctx, stride, dy, dx);
      const Values from = x.get(), gradient = dy.get();
      Values expected(static_cast<size_t>(out.numel())), expected_dx(from.size());
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t p = 0; p < out[1]; ++p)
          for (int64_t q = 0; q < out[2]; ++q)
            for (int64_t c = 0; c < 3; ++c) {
              const int64_t o = ((n * out[1] + p) * out[2] + q) * wide + c + (wide - 3) / 2;
              const int64_t i = ((n * 5 + p * stride) * 6 + q * stride) * 3 + c;
              expected[o] = from[i];
              expected_dx[i] = gradient[o];
            }
      EXPECT_EQ(y.get(), expected);
      EXPECT_EQ(dx.get(), expected_dx);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Elementwise,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Values(1, 2)));

TEST(Vectors, AreFilledAndAdded) {
  Context ctx(device(), 2);
  const OwnedTensor x({kLong}, DType::f32), y({kLong}, DType::f32, Values(kLong, 1.0));
  ops::fill(ctx, x.floats(), 2.5f);
  EXPECT_EQ(x.get(), Values(kLong, 2.5));
  ops::add(ctx, x.floats(), y.floats());
  EXPECT_EQ(y.get(), Values(kLong, 3.5));
  // an odd start: a vector need not be aligned for packs of elements
  ops::add(ctx, x.floats().subspan(1), y.floats().subspan(1));
  Values twice(kLong, 6.0);
  twice[0] = 3.5;
  EXPECT_EQ(y.get(), twice);
  ops::fill(ctx, std::span<float>{}, 1.0f);
  EXPECT_THROW(ops::add(ctx, x.floats().first(3), y.floats()), UserError);
}

/// The loops convert many values at once; one by one is the definition.
TEST(Bfloat16, VectorLoopsRoundLikeTheScalarConversion) {
  Context ctx(device());
  std::vector<float> values{0.0f,
                            -0.0f,
                            1.0f,
                            0x1.01p0f,
                            0x1.03p0f,
                            0x1.010001p0f,
                            0x1p-149f,
                            0x1.fffffep127f,
                            INFINITY,
                            -INFINITY,
                            NAN,
                            -NAN,
                            std::bit_cast<float>(0x7f800001u),
                            std::bit_cast<float>(0xffffffffu)};
  const size_t few = values.size();
  while (values.size() < 200) values.push_back(values[values.size() % few]);
  const auto n = static_cast<int64_t>(values.size());
  const OwnedTensor x({n}, DType::f32), y({n}, DType::bf16);
  copy_now(Tensor{values.data(), {n}, DType::f32, Device::cpu}, x);
  ops::convert(ctx, x, y);
  std::vector<bf16> converted(values.size());
  copy_now(y, Tensor{converted.data(), {n}, DType::bf16, Device::cpu});
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(converted[i].bits, bf16(values[i]).bits) << values[i];
  EXPECT_EQ(bf16(0x1.01p0f).bits, 0x3f80) << "ties go to the even neighbour";
  EXPECT_EQ(bf16(0x1.03p0f).bits, 0x3f82);
}

TEST(ElementwiseErrors, NameTheInvalidArgument) {
  Context ctx(device());
  const OwnedTensor x({4}, DType::f32), other({5}, DType::f32), half({4}, DType::bf16);
  EXPECT_THROW(ops::add(ctx, x, other), UserError);
  EXPECT_THROW(ops::relu_forward(ctx, x, half), UserError);
  EXPECT_THROW(ops::dropout(ctx, 1.0f, Philox(1, Purpose::dropout), 0, x, x), UserError);
}

}  // namespace
}  // namespace tw::test
