#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "engine/core/error.h"
#include "engine/ops/batch_norm.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using ops::BatchNormParams;
using Values = std::vector<double>;

/// The tensors of one batch norm.
struct Problem {
  Shape shape;
  DType dtype;
  Shape vector{shape[3]};
  OwnedTensor x = normal_tensor(shape, dtype, 1);
  OwnedTensor residual = normal_tensor(shape, dtype, 2);
  OwnedTensor dy = normal_tensor(shape, dtype, 3);
  OwnedTensor dy2 = normal_tensor(shape, dtype, 4);
  OwnedTensor gamma = normal_tensor(vector, DType::f32, 5);
  OwnedTensor beta = normal_tensor(vector, DType::f32, 6);
  OwnedTensor running_mean = normal_tensor(vector, DType::f32, 7);
  OwnedTensor running_var{vector, DType::f32, Values(static_cast<size_t>(shape[3]), 0.7)};
  OwnedTensor mean{vector, DType::f32}, rstd{vector, DType::f32};
  OwnedTensor dgamma = normal_tensor(vector, DType::f32, 8);
  OwnedTensor dbeta = normal_tensor(vector, DType::f32, 9);
  OwnedTensor y{shape, dtype}, dx{shape, dtype}, dresidual{shape, dtype};
  Buffer scratch{};

  Context& with_scratch(Context& ctx) {
    scratch = Buffer(device(), ops::batch_norm_scratch_bytes(ctx, shape));
    ctx.set_scratch({scratch.data(), scratch.bytes()});
    return ctx;
  }
  ops::BatchNormForward forward(bool add) {
    return {.x = x,
            .residual = add ? residual : Tensor{},
            .y = y,
            .gamma = gamma,
            .beta = beta,
            .running_mean = running_mean,
            .running_var = running_var,
            .saved_mean = mean,
            .saved_rstd = rstd};
  }
  ops::BatchNormBackward backward() {
    return {.x = x,
            .y = y,
            .dy = dy,
            .dy2 = {},
            .dx = dx,
            .dresidual = {},
            .gamma = gamma,
            .beta = beta,
            .saved_mean = mean,
            .saved_rstd = rstd,
            .dgamma = dgamma,
            .dbeta = dbeta};
  }
};

/// The formula of the header, in double. An empty residual is none.
struct Reference {
  Values y, mean, variance, rstd;

  Reference(const Values& x, const Values& residual, const Values& gamma, const Values& beta,
            bool relu, double epsilon = 1e-5)
      : y(x.size()), mean(gamma.size()), variance(gamma.size()), rstd(gamma.size()) {
    const size_t channels = gamma.size();
    const double rows = static_cast<double>(x.size() / channels);
    for (size_t i = 0; i < x.size(); ++i) mean[i % channels] += x[i] / rows;
    for (size_t i = 0; i < x.size(); ++i)
      variance[i % channels] += std::pow(x[i] - mean[i % channels], 2) / rows;
    for (size_t c = 0; c < channels; ++c) rstd[c] = 1 / std::sqrt(variance[c] + epsilon);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i % channels;
      y[i] = (x[i] - mean[c]) * rstd[c] * gamma[c] + beta[c];
      if (!residual.empty()) y[i] += residual[i];
      if (relu) y[i] = std::max(y[i], 0.0);
    }
  }
};

struct Gradients {
  Values dx, dgamma, dbeta;
};

/// Gradients for the masked gradient g of the normalised value (Ioffe and Szegedy 2015).
Gradients reference_gradients(const Values& x, const Values& g, const Values& gamma,
                              const Reference& r) {
  const size_t channels = gamma.size();
  const double rows = static_cast<double>(x.size() / channels);
  Gradients result{Values(x.size()), Values(channels), Values(channels)};
  const auto normal = [&](size_t i) {
    return (x[i] - r.mean[i % channels]) * r.rstd[i % channels];
  };
  for (size_t i = 0; i < x.size(); ++i) {
    result.dgamma[i % channels] += g[i] * normal(i);
    result.dbeta[i % channels] += g[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    result.dx[i] = gamma[c] * r.rstd[c] *
                   (g[i] - result.dbeta[c] / rows - normal(i) * result.dgamma[c] / rows);
  }
  return result;
}

/// dy [+ dy2], zero where the stored y is not positive.
Values masked(const Problem& p, bool two, bool relu) {
  Values g = p.dy.get();
  const Values second = p.dy2.get(), y = p.y.get();
  for (size_t i = 0; i < g.size(); ++i) {
    if (two) g[i] += second[i];
    if (relu && y[i] <= 0) g[i] = 0;
  }
  return g;
}

class BatchNorm : public testing::TestWithParam<std::tuple<int64_t, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  int64_t channels() const { return std::get<0>(GetParam()); }
  /// Odd sizes, with several full steps of the kernels and an incomplete one.
  Shape shape() const { return {std::max<int64_t>(2, 320 / channels()), 7, 9, channels()}; }
  Problem problem() const { return {.shape = shape(), .dtype = dtype()}; }
  Context ctx{device(), 2};
};

TEST_P(BatchNorm, ForwardMatchesTheFormula) {
  for (const bool relu : {false, true})
    for (const bool add : {false, true}) {
      Problem p = problem();
      ops::batch_norm_train(p.with_scratch(ctx), {.relu = relu}, p.forward(add));
      const Reference r(p.x.get(), add ? p.residual.get() : Values{}, p.gamma.get(), p.beta.get(),
                        relu);
      expect_close(p.y.get(), r.y, tolerance(dtype()), 1e-5);
      expect_close(p.mean.get(), r.mean, 0, 1e-6);
      expect_close(p.rstd.get(), r.rstd, 1e-5, 0);
    }
}

TEST_P(BatchNorm, RunningStatisticsFollowPyTorch) {
  Problem p = problem();
  const Values mean = p.running_mean.get(), var = p.running_var.get();
  ops::batch_norm_train(p.with_scratch(ctx), {.momentum = 0.3f}, p.forward(false));
  const Reference r(p.x.get(), {}, p.gamma.get(), p.beta.get(), false);
  const auto rows = static_cast<double>(shape().numel() / channels());
  Values expected_mean = mean, expected_var = var;
  for (size_t c = 0; c < mean.size(); ++c) {
    expected_mean[c] = 0.7 * mean[c] + 0.3 * r.mean[c];
    expected_var[c] = 0.7 * var[c] + 0.3 * r.variance[c] * rows / (rows - 1);
  }
  expect_close(p.running_mean.get(), expected_mean, 1e-5, 1e-6);
  expect_close(p.running_var.get(), expected_var, 1e-5, 0);
}

TEST_P(BatchNorm, InferenceUsesRunningStatisticsAndKeepsThem) {
  for (const bool add : {false, true}) {
    Problem p = problem();
    const Values mean = p.running_mean.get(), var = p.running_var.get();
    const Values x = p.x.get(), residual = p.residual.get();
    const Values gamma = p.gamma.get(), beta = p.beta.get();
    ops::batch_norm_infer(p.with_scratch(ctx), {.relu = true}, p.forward(add));
    Values expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i % mean.size();
      const double value = (x[i] - mean[c]) / std::sqrt(var[c] + 1e-5) * gamma[c] + beta[c];
      expected[i] = std::max(value + (add ? residual[i] : 0.0), 0.0);
    }
    expect_close(p.y.get(), expected, tolerance(dtype()), 1e-5);
    EXPECT_EQ(p.running_mean.get(), mean);
    EXPECT_EQ(p.running_var.get(), var);
  }
}

TEST_P(BatchNorm, BackwardMatchesTheFormula) {
  for (const bool relu : {false, true})
    for (const bool two : {false, true})
      for (const bool keep : {false, true})
        for (const bool with_y : {false, true}) {
          Problem p = problem();
          const BatchNormParams params{.relu = relu};
          ops::batch_norm_train(p.with_scratch(ctx), params, p.forward(with_y));
          ops::BatchNormBackward t = p.backward();
          if (!with_y) t.y = {};
          if (two) t.dy2 = p.dy2;
          if (keep) t.dresidual = p.dresidual;
          ops::batch_norm_backward(ctx, params, t, false);

          const Values g = masked(p, two, relu);
          const Reference r(p.x.get(), {}, p.gamma.get(), p.beta.get(), relu);
          const Gradients expected = reference_gradients(p.x.get(), g, p.gamma.get(), r);
          const double rounding = tolerance(dtype());
          expect_close(p.dx.get(), expected.dx, rounding, 20 * rounding);
          expect_close(p.dgamma.get(), expected.dgamma, 1e-4, 1e-3);
          expect_close(p.dbeta.get(), expected.dbeta, 1e-4, 1e-3);
          if (keep) expect_close(p.dresidual.get(), g, rounding, 0);
        }
}

TEST_P(BatchNorm, BackwardMayWriteTheResidualGradientInPlaceOfDy) {
  Problem p = problem(), q = problem();
  const BatchNormParams params{.relu = true};
  for (Problem* each : {&p, &q})
    ops::batch_norm_train(each->with_scratch(ctx), params, each->forward(true));
  ops::BatchNormBackward apart = p.backward(), in_place = q.backward();
  apart.dresidual = p.dresidual;
  in_place.dresidual = q.dy;
  ops::batch_norm_backward(p.with_scratch(ctx), params, apart, false);
  ops::batch_norm_backward(q.with_scratch(ctx), params, in_place, false);
  EXPECT_EQ(p.dx.bits(), q.dx.bits());
  EXPECT_EQ(p.dresidual.bits(), q.dy.bits());
}

TEST_P(BatchNorm, AccumulateAdds) {
  Problem p = problem();
  ops::batch_norm_train(p.with_scratch(ctx), {}, p.forward(false));
  const Values dgamma = p.dgamma.get(), dbeta = p.dbeta.get();
  ops::batch_norm_backward(ctx, {}, p.backward(), true);
  const Values sum_gamma = p.dgamma.get(), sum_beta = p.dbeta.get();
  ops::batch_norm_backward(ctx, {}, p.backward(), false);
  const Values one_gamma = p.dgamma.get(), one_beta = p.dbeta.get();
  for (size_t c = 0; c < dgamma.size(); ++c) {
    EXPECT_NEAR(sum_gamma[c], dgamma[c] + one_gamma[c], 1e-4);
    EXPECT_NEAR(sum_beta[c], dbeta[c] + one_beta[c], 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, BatchNorm,
                         testing::Combine(testing::Values(1, 3, 16, 17, 64, 257),
                                          testing::Values(DType::f32, DType::bf16)));

TEST(BatchNormGradient, MatchesFiniteDifferences) {
  Context ctx(device(), 1);
  Problem p{.shape = {2, 3, 2, 3}, .dtype = DType::f32};
  const BatchNormParams params{.relu = true};
  ops::batch_norm_train(p.with_scratch(ctx), params, p.forward(true));
  ops::BatchNormBackward t = p.backward();
  t.dresidual = p.dresidual;
  ops::batch_norm_backward(ctx, params, t, false);

  const Values x = p.x.get(), add = p.residual.get(), gamma = p.gamma.get(), beta = p.beta.get();
  const Values dy = p.dy.get();
  const auto loss = [&](const Reference& r) {
    return std::inner_product(dy.begin(), dy.end(), r.y.begin(), 0.0);
  };
  const auto check_gradient = [&](const OwnedTensor& actual, const Values& at, auto&& forward) {
    const auto expected = numeric_gradient(at, [&](const Values& v) { return loss(forward(v)); });
    expect_close(actual.get(), expected, 1e-4, 1e-5);
  };
  check_gradient(p.dx, x, [&](auto& v) { return Reference(v, add, gamma, beta, true); });
  check_gradient(p.dresidual, add, [&](auto& v) { return Reference(x, v, gamma, beta, true); });
  check_gradient(p.dgamma, gamma, [&](auto& v) { return Reference(x, add, v, beta, true); });
  check_gradient(p.dbeta, beta, [&](auto& v) { return Reference(x, add, gamma, v, true); });
}

/// Many chunks; bits must not depend on the number of threads.
TEST(BatchNormThreads, OneAndTwoThreadsGiveTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Shape& shape : {Shape{16, 32, 31, 16}, Shape{9, 4, 5, 512}}) {
      std::optional<std::vector<std::vector<std::byte>>> first;
      for (const int threads : {1, 2}) {
        Context ctx(device(), threads);
        Problem p{.shape = shape, .dtype = dtype};
        const BatchNormParams params{.relu = true};
        ops::batch_norm_train(p.with_scratch(ctx), params, p.forward(true));
        ops::BatchNormBackward t = p.backward();
        t.dy2 = p.dy2;
        t.dresidual = p.dresidual;
        ops::batch_norm_backward(ctx, params, t, false);
        const std::vector bits{p.y.bits(),     p.dx.bits(),   p.dresidual.bits(),  p.dgamma.bits(),
                               p.dbeta.bits(), p.mean.bits(), p.running_var.bits()};
        if (!first) first = bits;
        EXPECT_EQ(bits, *first);
      }
    }
}

/// A mean much larger than the deviation must not cause cancellation in the variance.
TEST(BatchNormAccuracy, VarianceSurvivesALargeMean) {
  Context ctx(device(), 1);
  Problem p{.shape = {64, 32, 32, 3}, .dtype = DType::f32};
  Values x = normal_values(p.shape.numel(), 1);
  for (double& value : x) value = 1000 + 0.1 * value;
  p.x.set(x);
  ops::batch_norm_train(p.with_scratch(ctx), {}, p.forward(false));
  const Reference r(p.x.get(), {}, p.gamma.get(), p.beta.get(), false);
  expect_close(p.rstd.get(), r.rstd, 1e-4, 0);
  expect_close(p.y.get(), r.y, 1e-3, 2e-3);
}

TEST(BatchNormNaN, PassesThroughTheRelu) {
  Context ctx(device(), 1);
  Problem p{.shape = {2, 4, 4, 16}, .dtype = DType::bf16};
  Values x = p.x.get();
  x[3] = std::nan("");
  p.x.set(x);
  // with these bits the carry of rounding would overflow into the sign
  std::vector<std::byte> beta = p.beta.bits();
  for (const auto& [c, bits] : {std::pair(7, 0x7fffffffu), std::pair(8, 0xffffffffu)})
    std::memcpy(&beta[4 * c], &bits, sizeof bits);
  p.beta.set_bits(beta);
  ops::batch_norm_train(p.with_scratch(ctx), {.relu = true}, p.forward(false));
  for (const int c : {3, 7, 8}) EXPECT_TRUE(std::isnan(p.y.get()[c])) << c;
  for (const int c : {2, 4, 9}) EXPECT_FALSE(std::isnan(p.y.get()[c])) << c;
}

TEST(BatchNormErrors, NameTheInvalidArgument) {
  Context ctx(device(), 1);
  Problem one{.shape = {1, 1, 1, 8}, .dtype = DType::f32};
  EXPECT_THROW(ops::batch_norm_train(one.with_scratch(ctx), {}, one.forward(false)), UserError);
  Problem p{.shape = {2, 4, 4, 8}, .dtype = DType::f32};
  ops::BatchNormForward t = p.forward(false);
  t.gamma = Tensor{};
  EXPECT_THROW(ops::batch_norm_train(p.with_scratch(ctx), {}, t), UserError);
}

}  // namespace
}  // namespace tw::test
