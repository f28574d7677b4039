#include "sparsify/selectors/gaussiank.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/common/distributions.h"
#include "sparsify/selectors/gaussian_loop.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

using Indices = std::vector<uint32_t>;

Indices selected(const std::string& refine, std::span<const float> u, size_t k, int threads = 1) {
  Context ctx(Device::cpu, threads);
  Settings settings = default_settings();
  settings.set("gaussiank.refine", refine);
  std::vector<float> e(u.size());
  SparseVector out;
  const double density = static_cast<double>(k) / static_cast<double>(u.size());
  selectors()
      .find("gaussiank")
      .value(ctx, settings, {})
      ->select(ctx, {.g = u, .e = e, .k = k, .density = density}, out);
  return {out.index_span().begin(), out.index_span().end()};
}
size_t sent(const std::string& refine, std::span<const float> u, size_t k) {
  return selected(refine, u, k).size();
}

/// The authors' loop, step by step over the whole vector. Zeros are not sent.
Indices selected_by_the_loop(std::span<const float> u, size_t k) {
  const double d = static_cast<double>(u.size());
  double mean = 0, square = 0;
  for (float x : u) mean += double{x} / d;
  for (float x : u) square += (double{x} - mean) * (double{x} - mean);
  const double quantile = std::abs(normal_quantile(static_cast<double>(k) / d / 2));
  double threshold = mean + quantile * std::sqrt(square / std::max(1.0, d - 1));
  Indices above;
  for (int i = 0; i < 3; ++i) {
    size_t count = 0;
    above.clear();
    for (size_t j = 0; j < u.size(); ++j)
      if (std::abs(double{u[j]}) > threshold) {
        ++count;
        if (u[j] != 0) above.push_back(static_cast<uint32_t>(j));
      }
    if (3 * count < 2 * k)
      threshold *= 0.5;
    else if (3 * count > 4 * k)
      threshold *= 1.5;
    else
      break;
  }
  return above;
}

std::vector<float> drawn(const std::string& name, size_t d = 1'000'000) {
  Context ctx(Device::cpu, 2);
  std::vector<float> u(d);
  fill_by_name(ctx, name, 1, u);
  return u;
}

TEST(GaussianThreshold, SendsTheEntriesOfTheAuthorsLoop) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, draw] : distributions()) all.push_back(drawn(name, 200'003));
  // every path through the three evaluations: shifted and squeezed copies of each
  const size_t plain = all.size();
  for (size_t i = 0; i < plain; ++i)
    for (float shift : {-3.0f, -0.3f, 0.3f, 3.0f}) {
      all.push_back(all[i]);
      for (float& x : all.back()) x += shift;
      all.push_back(all[i]);
      for (float& x : all.back()) x = std::copysign(std::pow(std::abs(x), std::abs(shift)), x);
    }
  for (const auto& u : all)
    for (size_t k : {20, 200, 2000, 20000, 100'000})
      EXPECT_EQ(selected("paper", u, k), selected_by_the_loop(u, k))
          << &u - all.data() << " k " << k;
}

// The forecast samples lines of 16 elements; here it misleads, or sees everything.
TEST(GaussianThreshold, SendsThemWhateverTheSampleForetells) {
  constexpr size_t kLong = 300'007;  // longer than the sample
  std::vector<std::vector<float>> all;
  for (const auto& [name, change] : uneven_vectors()) all.push_back(drawn(name, kLong));
  const std::vector<float> plain = drawn("gaussian", kLong);
  for (size_t spike : {size_t{0}, size_t{20}, kLong - 1}) {  // the first and the last are sampled
    all.push_back(plain);
    all.back()[spike] = 1e30f;
  }
  // one half of every line of a period is zero, so that lines differ from the whole
  for (size_t period : {32, 73, 1024}) {
    all.push_back(plain);
    for (size_t i = 0; i < kLong; ++i)
      if (i % period < period / 2) all.back()[i] = 0;
  }
  all.emplace_back(kLong);        // zeros
  all.emplace_back(kLong, 2.0f);  // one value
  all.emplace_back(kLong);
  all.back()[kLong / 2] = 1e-40f;  // subnormal
  for (size_t d : {1, 2, 15, 16, 17, 4097, 40'000, 65'536, 65'537}) all.push_back(drawn("t3", d));
  for (const auto& u : all)
    for (size_t k : {1, 30, 3000})
      for (int threads : {1, 2, 3}) {
        if (k > u.size()) continue;
        EXPECT_EQ(selected("paper", u, k, threads), selected_by_the_loop(u, k))
            << &u - all.data() << " k " << k << ", " << threads << " threads";
      }
}

// counts on 1e6 samples, k = 1000, as simulated for the documentation
TEST(GaussianThreshold, CountsOfKnownDistributions) {
  EXPECT_NEAR(static_cast<double>(sent("paper", drawn("gaussian"), 1000)), 995, 100);
  EXPECT_NEAR(static_cast<double>(sent("paper", drawn("laplace"), 1000)), 915, 100);
  EXPECT_NEAR(static_cast<double>(sent("paper", drawn("t3"), 1000)), 1014, 300);
  EXPECT_NEAR(static_cast<double>(sent("paper", drawn("lognormal"), 1000)), 1263, 200);
  EXPECT_EQ(sent("paper", drawn("uniform"), 1000), 0u);

  std::vector<float> signs(1'000'000);
  for (size_t i = 0; i < signs.size(); ++i) signs[i] = i % 2 ? 1.0f : -1.0f;
  EXPECT_EQ(sent("paper", signs, 1000), signs.size());
  // a first threshold above the largest float is halved into range
  for (float& x : signs) x *= 3e38f;
  EXPECT_EQ(sent("paper", signs, 1000), signs.size());
  EXPECT_EQ(sent("paper", std::vector<float>(1000), 10), 0u);
  // mean far below zero: a negative threshold selects everything
  EXPECT_EQ(sent("paper", std::vector<float>(1000, -1.0f), 10), 1000u);
}

TEST(GaussianHistogram, StaysNearKOnEveryVector) {
  for (const auto& [name, draw] : distributions())
    for (size_t k : {1, 200, 3000, 100'000})
      EXPECT_EQ(sent("histogram", drawn(name, 200'003), k), k) << name;
  EXPECT_EQ(sent("histogram", std::vector<float>(100'000, 2.0f), 77), 77u);
}

TEST(GaussianHistogram, TakesWholeBinsFromTheTopAndCutsTheLastByIndex) {
  Context ctx;
  Settings settings = default_settings();
  settings.set("gaussiank.refine", "histogram");
  const auto selector = selectors().find("gaussiank").value(ctx, settings, {});
  // 1.001 and 1.002 share a bin: the lower index is selected, not the larger magnitude
  const std::vector<float> g{0.5f, 1.001f, 3.0f, 1.002f, 0.9f};
  std::vector<float> e(g.size());
  SparseVector out;
  selector->select(ctx, {.g = g, .e = e, .k = 2}, out);
  EXPECT_EQ(std::vector(out.index_span().begin(), out.index_span().end()),
            (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(e, (std::vector<float>{0.5f, 0, 0, 1.002f, 0.9f}));
}

TEST(NormalQuantile, MatchesTables) {
  EXPECT_DOUBLE_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.0005), -3.2905267314918945, 1e-14);
  EXPECT_NEAR(normal_quantile(0.025), -1.9599639845400538, 1e-14);
  EXPECT_NEAR(normal_quantile(0.1), -1.2815515655446008, 1e-14);
  EXPECT_NEAR(normal_quantile(0.8), 0.8416212335729144, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-13);
  EXPECT_NEAR(normal_quantile(1e-300), -37.0471, 1e-4);
  EXPECT_NEAR(normal_quantile(1 - 1e-10), 6.361340889697422, 1e-6);
}

}  // namespace
}  // namespace tw
