#include <gtest/gtest.h>

#include <limits>

#include "engine/core/error.h"
#include "engine/ops/global_average.h"
#include "engine/ops/pool.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using ops::PoolKind, ops::PoolParams;
using Values = std::vector<double>;

struct Pooled {
  Values y, argmax;
};

/// Computes each window separately. Propagates dy, if given, to dx.
Pooled reference(const PoolParams& params, const Shape& x_shape, const Values& x,
                 const Values* dy = nullptr, Values* dx = nullptr) {
  const Shape s = params.output(x_shape);
  const int64_t k = params.kernel;
  Pooled result{Values(static_cast<size_t>(s.numel())), Values(static_cast<size_t>(s.numel()))};
  if (dx != nullptr) dx->assign(x.size(), 0.0);
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t p = 0; p < s[1]; ++p)
      for (int64_t q = 0; q < s[2]; ++q)
        for (int64_t c = 0; c < s[3]; ++c) {
          double best = -std::numeric_limits<double>::infinity(), sum = 0;
          int64_t at = -1, from = -1;
          const int64_t out = ((n * s[1] + p) * s[2] + q) * s[3] + c;
          for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < k; ++j) {
              const int64_t h = p * params.stride - params.padding + i;
              const int64_t w = q * params.stride - params.padding + j;
              if (h < 0 || w < 0 || h >= x_shape[1] || w >= x_shape[2]) continue;
              const int64_t index = ((n * x_shape[1] + h) * x_shape[2] + w) * s[3] + c;
              sum += x[index];
              if (x[index] > best) best = x[index], at = i * k + j, from = index;
              if (dx != nullptr && params.kind == PoolKind::average)
                (*dx)[index] += (*dy)[out] / static_cast<double>(k * k);
            }
          result.argmax[out] = static_cast<double>(at);
          result.y[out] = params.kind == PoolKind::max ? best : sum / static_cast<double>(k * k);
          if (dx != nullptr && params.kind == PoolKind::max) (*dx)[from] += (*dy)[out];
        }
  return result;
}

class Pool : public testing::TestWithParam<std::tuple<PoolParams, int64_t, DType>> {};

TEST_P(Pool, MatchesWindowsOneByOne) {
  const auto& [params, channels, dtype] = GetParam();
  const Shape shape{3, 7, 6, channels};
  const Shape out = params.output(shape);
  const OwnedTensor x = normal_tensor(shape, dtype, 1), dy = normal_tensor(out, dtype, 2);
  Values expected_dx;
  const Values dy_values = dy.get();
  const Pooled expected = reference(params, shape, x.get(), &dy_values, &expected_dx);
  for (const int threads : {1, 2}) {
    Context ctx(device(), threads);
    const OwnedTensor y(out, dtype), dx(shape, dtype), argmax(out, DType::u8);
    ops::pool_forward(ctx, params, x, y, argmax);
    ops::pool_backward(ctx, params, dy, argmax, dx);
    expect_close(y.get(), expected.y, tolerance(dtype), 1e-6);
    expect_close(dx.get(), expected_dx, tolerance(dtype), 1e-6);
    if (params.kind == PoolKind::max) {
      EXPECT_EQ(y.get(), expected.y);
      EXPECT_EQ(argmax.get(), expected.argmax);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Pool,
    testing::Combine(
        testing::Values(PoolParams{.kind = PoolKind::max},
                        PoolParams{.kind = PoolKind::max, .kernel = 3, .stride = 2, .padding = 1},
                        PoolParams{.kind = PoolKind::max, .kernel = 3, .stride = 1, .padding = 0},
                        PoolParams{.kind = PoolKind::max, .kernel = 2, .stride = 3, .padding = 1},
                        PoolParams{.kind = PoolKind::average},
                        PoolParams{
                            .kind = PoolKind::average, .kernel = 3, .stride = 2, .padding = 1}),
        testing::Values(1, 3, 16, 17, 64, 300), testing::Values(DType::f32, DType::bf16)));

TEST(PoolTies, SelectTheFirstPosition) {
  Context ctx(device());
  const PoolParams params{.kind = PoolKind::max, .kernel = 3, .stride = 2, .padding = 1};
  const OwnedTensor x({1, 4, 4, 3}, DType::f32, Values(48, -2.0));
  const OwnedTensor y({1, 2, 2, 3}, DType::f32), argmax({1, 2, 2, 3}, DType::u8);
  ops::pool_forward(ctx, params, x, y, argmax);
  EXPECT_EQ(y.get(), Values(12, -2.0)) << "padding must not win over negative values";
  EXPECT_EQ(argmax.get(), (Values{4, 4, 4, 3, 3, 3, 1, 1, 1, 0, 0, 0}));
}

TEST(PoolNaN, PropagatesAsInPyTorch) {
  Context ctx(device());
  Values values = normal_values(4 * 16, 1);
  values[2 * 16 + 5] = std::nan("");
  const OwnedTensor x({1, 2, 2, 16}, DType::bf16, values);
  const OwnedTensor y({1, 1, 1, 16}, DType::bf16), argmax({1, 1, 1, 16}, DType::u8);
  ops::pool_forward(ctx, {}, x, y, argmax);
  EXPECT_TRUE(std::isnan(y.get()[5]));
  EXPECT_EQ(argmax.get()[5], 2);
  EXPECT_FALSE(std::isnan(y.get()[4]));
}

TEST(PoolErrors, NameTheImpossibleWindow) {
  EXPECT_THROW((PoolParams{.kernel = 3}.output({1, 2, 2, 8})), UserError);
  EXPECT_THROW((PoolParams{.kernel = 2, .padding = 2}.output({1, 8, 8, 8})), UserError);
  EXPECT_THROW((PoolParams{.stride = 0}.output({1, 8, 8, 8})), UserError);
}

TEST(GlobalAverage, AveragesPixelsAndDistributesTheGradient) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t channels : {1, 3, 16, 17, 64, 130}) {
      const Shape shape{3, 5, 4, channels}, out{3, channels};
      const OwnedTensor x = normal_tensor(shape, dtype, 1), dy = normal_tensor(out, dtype, 2);
      const Values values = x.get(), gradient = dy.get();
      Values expected(static_cast<size_t>(out.numel())), expected_dx(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t o = i / (20 * channels) * channels + i % channels;
        expected[o] += values[i] / 20;
        expected_dx[i] = gradient[o] / 20;
      }
      for (const int threads : {1, 2}) {
        Context ctx(device(), threads);
        const OwnedTensor y(out, dtype), dx(shape, dtype);
        ops::global_average_forward(ctx, x, y);
        ops::global_average_backward(ctx, dy, dx);
        expect_close(y.get(), expected, tolerance(dtype), 1e-6);
        expect_close(dx.get(), expected_dx, tolerance(dtype), 1e-6);
      }
    }
}

}  // namespace
}  // namespace tw::test
