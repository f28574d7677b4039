#include "engine/ops/sgd.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/error.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

using ops::SgdParams;

std::vector<float> normal_floats(int64_t n, uint64_t id) {
  const auto values = normal_values(n, id);
  return {values.begin(), values.end()};
}

class Sgd : public testing::TestWithParam<SgdParams> {};

TEST_P(Sgd, ThreeStepsFollowPyTorch) {
  const SgdParams p = GetParam();
  const int64_t length = (1 << 15) + 13;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2}) {
    Context ctx(Device::cpu, threads);
    std::vector<float> w = normal_floats(length, 1), m(w.size());
    std::vector<double> w_expected(w.begin(), w.end()), m_expected(w.size());
    for (uint64_t step = 0; step < 3; ++step) {
      const std::vector<float> g = normal_floats(length, 10 + step);
      ops::sgd_update(ctx, p, g, m, w);
      for (size_t i = 0; i < g.size(); ++i) {
        const double gradient = double{p.scale} * g[i] + double{p.weight_decay} * w_expected[i];
        m_expected[i] = p.momentum * m_expected[i] + gradient;
        w_expected[i] -=
            p.lr * (p.nesterov ? gradient + p.momentum * m_expected[i] : m_expected[i]);
      }
    }
    expect_close({w.begin(), w.end()}, w_expected, 1e-5, 1e-6);
    if (p.momentum > 0) expect_close({m.begin(), m.end()}, m_expected, 1e-5, 1e-6);
    results.push_back(w);
  }
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(Conventions, Sgd,
                         testing::Values(SgdParams{0.1f, 0.0f, 0.0f, false, 1.0f},
                                         SgdParams{0.1f, 0.0f, 1e-2f, false, 0.25f},
                                         SgdParams{0.1f, 0.9f, 1e-2f, false, 0.25f},
                                         SgdParams{0.1f, 0.9f, 1e-2f, true, 0.25f}));

TEST(SgdWithoutMomentum, NeedsNoBuffer) {
  Context ctx;
  std::vector<float> w(5, 1.0f);
  const std::vector<float> g(5, 2.0f);
  ops::sgd_update(ctx, {0.5f, 0.0f, 0.0f, false, 1.0f}, g, {}, w);
  EXPECT_EQ(w, std::vector<float>(5, 0.0f));
  EXPECT_THROW(ops::sgd_update(ctx, {0.5f, 0.9f, 0.0f, false, 1.0f}, g, {}, w), UserError);
}

TEST(FirstNonfinite, FindsTheLowestIndex) {
  for (const int threads : {1, 2}) {
    Context ctx(Device::cpu, threads);
    std::vector<float> x = normal_floats(200'000, 1);
    x[3] = std::numeric_limits<float>::max();
    x[4] = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(ops::first_nonfinite(ctx, x), x.size());
    x[199'999] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(ops::first_nonfinite(ctx, x), 199'999u);
    x[70'001] = std::nanf("");
    x[150'000] = std::nanf("");
    EXPECT_EQ(ops::first_nonfinite(ctx, x), 70'001u);
    x[0] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(ops::first_nonfinite(ctx, x), 0u);
    EXPECT_EQ(ops::first_nonfinite(ctx, {}), 0u);
  }
}

}  // namespace
}  // namespace tw::test
