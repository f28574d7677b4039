#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/ops/loss.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using ops::LossSums;
using Values = std::vector<double>;

/// PyTorch's definition of label smoothing, written out: the sum of losses.
double reference(const Values& logits, const Values& labels, double smoothing) {
  const size_t classes = logits.size() / labels.size();
  double loss = 0;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += std::exp(logits[n * classes + c]);
    for (size_t c = 0; c < classes; ++c) {
      const double target = smoothing / static_cast<double>(classes) +
                            (static_cast<double>(c) == labels[n] ? 1 - smoothing : 0);
      loss -= target * (logits[n * classes + c] - std::log(total));
    }
  }
  return loss;
}

LossSums cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels, float smoothing,
                       float grad_scale, const Tensor& dlogits) {
  const OwnedTensor sums(ops::kLossSumsShape, DType::u8);
  ops::softmax_cross_entropy(ctx, logits, labels, smoothing, grad_scale, dlogits, sums);
  return ops::take_sums(ctx, sums);
}

class Loss : public testing::TestWithParam<std::tuple<int64_t, float>> {};

TEST_P(Loss, ValueAndGradientMatchTheDefinition) {
  const auto& [classes, smoothing] = GetParam();
  const int64_t rows = 131;
  const OwnedTensor logits = normal_tensor({rows, classes}, DType::f32, 1);
  Values labels(static_cast<size_t>(rows));
  int64_t counted = 0;
  for (int64_t n = 0; n < rows; ++n) {
    labels[n] = n % 7 == 3 ? -1.0 : static_cast<double>(n * 5 % classes);
    counted += labels[n] >= 0;
  }
  const OwnedTensor label({rows}, DType::i32, labels);
  const Values x = logits.get();
  const float grad_scale = 0.5f;

  std::vector<std::vector<std::byte>> gradients;
  std::vector<double> losses;
  for (const int threads : {1, 2}) {
    Context ctx(device(), threads);
    const OwnedTensor dlogits = normal_tensor({rows, classes}, DType::f32, 9);
    const LossSums sums = cross_entropy(ctx, logits, label, smoothing, grad_scale, dlogits);
    EXPECT_EQ(sums.count, counted);
    EXPECT_NEAR(sums.loss, reference(x, labels, smoothing), 1e-4);
    gradients.push_back(dlogits.bits());
    losses.push_back(sums.loss);
    if (threads == 2) continue;
    // rows do not mix, so a few of them are enough
    for (const size_t n : {0, 3, 130}) {
      const Values row(x.begin() + n * classes, x.begin() + (n + 1) * classes);
      const auto loss = [&](const Values& v) {
        return reference(v, {labels[n]}, smoothing) * grad_scale / static_cast<double>(counted);
      };
      const Values actual = dlogits.get();
      expect_close({actual.begin() + n * classes, actual.begin() + (n + 1) * classes},
                   numeric_gradient(row, loss), 1e-4, 1e-8);
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(losses[0], losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Classes, Loss,
                         testing::Combine(testing::Values(1, 3, 10, 100),
                                          testing::Values(0.0f, 0.1f)));

LossSums evaluate(const Values& logits, const Values& labels) {
  Context ctx(device());
  const auto rows = static_cast<int64_t>(labels.size());
  const auto classes = static_cast<int64_t>(logits.size()) / rows;
  return cross_entropy(ctx, OwnedTensor({rows, classes}, DType::f32, logits),
                       OwnedTensor({rows}, DType::i32, labels), 0, 1, {});
}

TEST(LossCounts, IncludeTopOneAndTopFive) {
  const Values logits{6, 5, 4, 3, 2, 1, 0};
  for (int label = 0; label < 7; ++label) {
    const LossSums sums = evaluate(logits, {static_cast<double>(label)});
    EXPECT_EQ(sums.top1, label < 1) << label;
    EXPECT_EQ(sums.top5, label < 5) << label;
  }
}

TEST(LossCounts, EqualLogitsGoToTheLowerClass) {
  EXPECT_EQ(evaluate({1, 1, 1}, {0}).top1, 1);
  EXPECT_EQ(evaluate({1, 1, 1}, {1}).top1, 0);
  const Values even(7, 0.0);
  EXPECT_EQ(evaluate(even, {4}).top5, 1);
  EXPECT_EQ(evaluate(even, {5}).top5, 0);
}

TEST(LossCounts, ANaNRowIsNeverCorrect) {
  const LossSums sums = evaluate(Values(7, std::nan("")), {0});
  EXPECT_EQ(sums.top1, 0);
  EXPECT_EQ(sums.top5, 0);
  EXPECT_EQ(sums.count, 1);
}

TEST(LossStability, LargeLogitsNeitherOverflowNorVanish) {
  EXPECT_NEAR(evaluate({1e4, -1e4}, {0}).loss, 0, 1e-12);
  EXPECT_NEAR(evaluate({1e4, -1e4}, {1}).loss, 2e4, 1e-3);
  EXPECT_NEAR(evaluate({-1e4, -1e4}, {1}).loss, std::log(2), 1e-12);
}

TEST(LossPadding, AloneGivesZeroSums) {
  Context ctx(device());
  const OwnedTensor logits = normal_tensor({3, 10}, DType::f32, 1);
  const OwnedTensor dlogits = normal_tensor({3, 10}, DType::f32, 2);
  const LossSums sums =
      cross_entropy(ctx, logits, OwnedTensor({3}, DType::i32, Values(3, -1)), 0.1f, 1, dlogits);
  EXPECT_EQ(sums.count, 0);
  EXPECT_EQ(sums.loss, 0);
  EXPECT_EQ(dlogits.get(), Values(30, 0.0));
}

TEST(LossSums, AccumulateUntilTaken) {
  Context ctx(device());
  const OwnedTensor logits({1, 2}, DType::f32, {0, 0}), label({1}, DType::i32, {0});
  const OwnedTensor sums(ops::kLossSumsShape, DType::u8);
  for (int i = 0; i < 3; ++i) ops::softmax_cross_entropy(ctx, logits, label, 0, 1, {}, sums);
  const LossSums taken = ops::take_sums(ctx, sums);
  EXPECT_EQ(taken.count, 3);
  EXPECT_EQ(taken.top1, 3);
  EXPECT_NEAR(taken.loss, 3 * std::log(2), 1e-6);
  EXPECT_EQ(ops::take_sums(ctx, sums).count, 0);
}

TEST(LossErrors, ALabelAboveTheClassesIsReported) {
  if (device() == Device::cpu)
    EXPECT_THROW(evaluate({1, 2, 3}, {3}), UserError);
  else
    EXPECT_TRUE(std::isnan(evaluate({1, 2, 3}, {3}).loss));
}

}  // namespace
}  // namespace tw::test
