#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "engine/ops/sgd.h"
#include "tests/support/decay_bounds.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using ops::SgdParams;

class Sgd : public testing::TestWithParam<SgdParams> {};

TEST_P(Sgd, ThreeStepsFollowPyTorch) {
  const SgdParams p = GetParam();
  const int64_t length = (1 << 15) + 13;
  std::vector<std::vector<std::byte>> results;
  for (const int threads : {1, 2}) {
    Context ctx(device(), threads);
    const OwnedTensor w = normal_tensor({length}, DType::f32, 1), m({length}, DType::f32);
    std::vector<double> w_expected = w.get(), m_expected = m.get();
    for (uint64_t step = 0; step < 3; ++step) {
      const OwnedTensor gradient_tensor = normal_tensor({length}, DType::f32, 10 + step);
      const std::vector<double> g = gradient_tensor.get();
      ops::sgd_update(ctx, p, kDecayAll, gradient_tensor.floats(), m.floats(), w.floats());
      for (size_t i = 0; i < g.size(); ++i) {
        const double gradient = double{p.scale} * g[i] + double{p.weight_decay} * w_expected[i];
        m_expected[i] = p.momentum * m_expected[i] + gradient;
        w_expected[i] -=
            p.lr * (p.nesterov ? gradient + p.momentum * m_expected[i] : m_expected[i]);
      }
    }
    expect_close(w.get(), w_expected, 1e-5, 1e-6);
    if (p.momentum > 0) expect_close(m.get(), m_expected, 1e-5, 1e-6);
    results.push_back(w.bits());
  }
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(Conventions, Sgd,
                         testing::Values(SgdParams{0.1f, 0.0f, 0.0f, false, 1.0f},
                                         SgdParams{0.1f, 0.0f, 1e-2f, false, 0.25f},
                                         SgdParams{0.1f, 0.9f, 1e-2f, false, 0.25f},
                                         SgdParams{0.1f, 0.9f, 1e-2f, true, 0.25f}));

/// One call with bounds gives the bits of one call per range.
TEST_P(Sgd, WeightDecayStartsAndEndsAtTheBounds) {
  Context ctx(device(), 2);
  SgdParams plain = GetParam();
  plain.weight_decay = 0;
  const int64_t length = 40'003;
  std::vector<uint32_t> bounds;
  for (uint32_t bound = 7; bound < 40'000; bound += 1 + bound / 40) bounds.push_back(bound);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, bounds.size()}) {
    const std::span<const uint32_t> some = std::span(bounds).first(count);
    const OwnedTensor g = normal_tensor({length}, DType::f32, 5);
    const OwnedTensor w = normal_tensor({length}, DType::f32, 1), m({length}, DType::f32);
    const OwnedTensor each_w = normal_tensor({length}, DType::f32, 1), each_m({length}, DType::f32);
    ops::sgd_update(ctx, GetParam(), some, g.floats(), m.floats(), w.floats());
    size_t begin = 0;
    for (size_t range = 0; range <= count; ++range) {
      const size_t end = range < count ? some[range] : static_cast<size_t>(length);
      const auto part = [&](const OwnedTensor& x) {
        return x.floats().subspan(begin, end - begin);
      };
      ops::sgd_update(ctx, range % 2 == 1 ? GetParam() : plain, kDecayAll, part(g), part(each_m),
                      part(each_w));
      begin = end;
    }
    EXPECT_EQ(w.bits(), each_w.bits()) << count << " bounds";
    EXPECT_EQ(m.bits(), each_m.bits()) << count << " bounds";
  }
}

/// Where the gradient contains its momentum, weight decay alone has momentum: the bits are those of
/// an update without gradient and one without momentum.
TEST_P(Sgd, CorrectedRangesHaveAMomentumOfDecayAlone) {
  Context ctx(device(), 2);
  const SgdParams p = GetParam();
  const SgdParams decay_only{p.lr, p.momentum, p.weight_decay, p.nesterov, 0.0f},
      no_momentum{p.lr, 0, 0, false, p.scale};
  constexpr uint32_t kLength = 5'000, kDecay = 1'000, kCorrected = 2'500;
  const OwnedTensor g = normal_tensor({kLength}, DType::f32, 5);
  const auto initial = [](uint64_t seed) { return normal_tensor({kLength}, DType::f32, seed); };
  const OwnedTensor w = initial(1), m = initial(2), each_w = initial(1), each_m = initial(2);
  const uint32_t decay[] = {kDecay, 4'000}, corrected[] = {kCorrected};
  ops::sgd_update(ctx, p, decay, g.floats(), m.floats(), w.floats(), corrected);

  const auto update = [&](const SgdParams& params, size_t begin, size_t end, bool decays) {
    const auto part = [&](const OwnedTensor& x) { return x.floats().subspan(begin, end - begin); };
    const std::span<const uint32_t> bounds(kDecayAll);
    ops::sgd_update(ctx, params, bounds.first(decays), part(g), part(each_m), part(each_w));
  };
  update(p, 0, kDecay, false);
  update(p, kDecay, kCorrected, true);
  if (p.weight_decay > 0) update(decay_only, kCorrected, 4'000, true);
  update(no_momentum, kCorrected, kLength, false);
  EXPECT_EQ(w.bits(), each_w.bits());
  EXPECT_EQ(m.bits(), each_m.bits());
}

/// More bounds than one launch on a GPU takes.
TEST(SgdUpdate, DecaysEverySecondElement) {
  Context ctx(device());
  const int64_t length = 5'001;
  std::vector<uint32_t> bounds;
  for (uint32_t i = 1; i < length; ++i) bounds.push_back(i);
  const OwnedTensor g({length}, DType::f32), w({length}, DType::f32, std::vector<double>(5'001, 2));
  ops::sgd_update(ctx, {0.5f, 0.0f, 1.0f, false, 1.0f}, bounds, g.floats(), {}, w.floats());
  std::vector<double> expected(5'001, 2);
  for (size_t i = 1; i < expected.size(); i += 2) expected[i] = 1;
  EXPECT_EQ(w.get(), expected);
}

TEST(SgdUpdate, WithoutBoundsNothingDecays) {
  Context ctx(device());
  const OwnedTensor g({3}, DType::f32), w({3}, DType::f32, std::vector<double>(3, 2));
  ops::sgd_update(ctx, {0.5f, 0.0f, 1.0f, false, 1.0f}, {}, g.floats(), {}, w.floats());
  EXPECT_EQ(w.get(), std::vector<double>(3, 2));
}

TEST(SgdUpdate, NeedsNoMomentumBufferWithoutMomentum) {
  Context ctx(device());
  const OwnedTensor w({5}, DType::f32, std::vector<double>(5, 1));
  const OwnedTensor g({5}, DType::f32, std::vector<double>(5, 2));
  ops::sgd_update(ctx, {0.5f, 0.0f, 0.0f, false, 1.0f}, kDecayAll, g.floats(), {}, w.floats());
  EXPECT_EQ(w.get(), std::vector<double>(5, 0));
  EXPECT_THROW(
      ops::sgd_update(ctx, {0.5f, 0.9f, 0.0f, false, 1.0f}, kDecayAll, g.floats(), {}, w.floats()),
      UserError);
}

}  // namespace
}  // namespace tw::test
