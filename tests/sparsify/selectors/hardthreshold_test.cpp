// The hard threshold: which entries reach lambda, and when `auto` takes it.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/error_text.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

using Indices = std::vector<uint32_t>;

std::unique_ptr<Selector> make_hard(Context& ctx, const std::string& lambda, size_t slices = 1) {
  Settings settings = default_settings();
  settings.set("hardthreshold.lambda", lambda);
  return selectors().find("hardthreshold").value(ctx, settings, {.slices = slices});
}

/// Selects in one step; e holds the residual.
Indices step_of(Selector& selector, std::span<const float> g, std::span<float> e, size_t k,
                bool warmup = false, size_t slice = 0) {
  Context ctx;
  SparseVector out;
  selector.select(ctx, {.g = g, .e = e, .k = k, .slice = slice, .warmup = warmup}, out);
  return {out.index_span().begin(), out.index_span().end()};
}

/// The indices of at least lambda in e + g, which are then 0 in e.
Indices reaching(float lambda, std::span<const float> g, std::span<float> e) {
  Indices set;
  for (size_t i = 0; i < e.size(); ++i) {
    e[i] += g[i];
    if (std::abs(e[i]) < lambda) continue;
    set.push_back(static_cast<uint32_t>(i));
    e[i] = 0;
  }
  return set;
}

std::vector<float> drawn_at(uint64_t seed) {
  Context ctx;
  std::vector<float> g(20'011);
  fill_random(ctx, distributions().at("gaussian"), seed, g);
  return g;
}

TEST(HardThreshold, SendsWhatReachesLambda) {
  Context ctx;
  const auto selector = make_hard(ctx, "0.5");
  const std::vector<float> g{0.5f, -0.5f, 0.49999997f, 0, -3, 1e-30f};
  std::vector<float> e(g.size());
  EXPECT_EQ(step_of(*selector, g, e, 1, true), (Indices{0, 1, 4}));
  EXPECT_EQ(e, (std::vector<float>{0, 0, 0.49999997f, 0, 0, 1e-30f}));
  EXPECT_TRUE(selector->state().empty());
}

TEST(HardThreshold, AutoIsTopKUntilTheFirstStepAfterTheWarmup) {
  constexpr size_t k = 20;
  Context ctx;
  const auto selector = make_hard(ctx, "auto");
  std::vector<float> e(20'011), u(e.size());
  for (uint64_t step = 0; step < 3; ++step) {
    const std::vector<float> g = drawn_at(step);
    for (size_t i = 0; i < u.size(); ++i) u[i] = e[i] + g[i];
    EXPECT_EQ(step_of(*selector, g, e, k, step < 2), sorted_top(u, k)) << "step " << step;
  }
  float lambda = INFINITY;
  for (uint32_t i : sorted_top(u, k)) lambda = std::min(lambda, std::abs(u[i]));
  std::vector<float> expected(e);
  for (uint64_t step = 3; step < 9; ++step) {
    const std::vector<float> g = drawn_at(step);
    const Indices got = step_of(*selector, g, e, 7 * k);
    EXPECT_EQ(got, reaching(lambda, g, expected)) << "step " << step;
    EXPECT_EQ(e, expected);
    EXPECT_NE(got.size(), k);
  }
}

TEST(HardThreshold, AutoWaitsForKNonZeros) {
  Context ctx;
  const auto selector = make_hard(ctx, "auto");
  std::vector<float> e(5);
  EXPECT_EQ(step_of(*selector, std::vector<float>{0, 9, 0, 0, 0}, e, 2), (Indices{1}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{1, 0, 3, 2, 0}, e, 2), (Indices{2, 3}));
  // lambda is 2, from this step; the residual holds 1
  EXPECT_EQ(step_of(*selector, std::vector<float>{1, 1, 0, 2, -4}, e, 1), (Indices{0, 3, 4}));
}

TEST(HardThreshold, AutoStaysWhenExactlyKEntriesReachIt) {
  Context ctx;
  const auto selector = make_hard(ctx, "auto");
  std::vector<float> e(3);
  EXPECT_EQ(step_of(*selector, std::vector<float>{0, 2, 0}, e, 1), (Indices{1}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{9, 0, 0}, e, 1), (Indices{0}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{0, 3, 2}, e, 1), (Indices{1, 2}));
}

TEST(HardThreshold, AutoOfAllEntriesIsTheLeast) {
  Context ctx;
  const auto selector = make_hard(ctx, "auto");
  std::vector<float> e(3);
  EXPECT_EQ(step_of(*selector, std::vector<float>{3, -2, 5}, e, 9), (Indices{0, 1, 2}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{1, 2, -6}, e, 1), (Indices{1, 2}));
}

TEST(HardThreshold, EverySliceTakesItsOwnLambda) {
  Context ctx;
  const auto selector = make_hard(ctx, "auto", 2);
  std::vector<float> a(3), b(3);
  EXPECT_EQ(step_of(*selector, std::vector<float>{1, 3, 2}, a, 1, false, 0), (Indices{1}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{10, 40, 20}, b, 1, false, 1), (Indices{1}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{2, 9, 0}, a, 1, false, 0), (Indices{0, 1}));
  EXPECT_EQ(step_of(*selector, std::vector<float>{2, 9, 0}, b, 1, false, 1), (Indices{}));
  ASSERT_EQ(selector->state().size(), 2 * sizeof(float));
  float lambdas[2];
  std::memcpy(lambdas, selector->state().data(), sizeof lambdas);
  EXPECT_EQ(lambdas[0], 3);
  EXPECT_EQ(lambdas[1], 40);
}

TEST(HardThreshold, SlicesOfOneMessageTakeTheirLambdas) {
  Context ctx;
  const auto selector = make_hard(ctx, "auto", 2);
  std::vector<float> a(3), b(3);
  const auto step = [&](const std::vector<float>& g, const std::vector<float>& h) {
    SparseVector out;
    selector->select(ctx, {.g = g, .e = a, .k = 1, .slice = 0}, out);
    selector->select(ctx, {.g = h, .e = b, .k = 1, .base = 3, .slice = 1}, out);
    return Indices(out.index_span().begin(), out.index_span().end());
  };
  EXPECT_EQ(step({1, 3, 2}, {10, 40, 20}), (Indices{1, 4}));
  // the lambdas are 3 and 40
  EXPECT_EQ(step({3, 0, 0}, {40, 50, 10}), (Indices{0, 3, 4}));
}

TEST(HardThreshold, RejectsWhatIsNoPositiveNumber) {
  Context ctx;
  for (const char* bad : {"0", "-1", "", "big", "1x", "inf", "nan", "1e99"})
    EXPECT_EQ(
        test::error_text<UserError>([&] { make_hard(ctx, bad); }),
        fmt::format("[hardthreshold] lambda is \"{}\"; expected auto or a positive number", bad));
  for (const char* good : {"auto", "1", "0.004", "1e-30"}) EXPECT_NE(make_hard(ctx, good), nullptr);
}

TEST(HardThreshold, AWrongLambdaIsRefusedBeforeTheSelectorIsMade) {
  Settings settings = default_settings();
  settings.set("hardthreshold.lambda", "0");
  const std::string wrong = "[hardthreshold] lambda is \"0\"; expected auto or a positive number";
  for (const SgdConfig& config : {SgdConfig{.sparsifier = "hardthreshold"},
                                  SgdConfig{.sparsifier = "topk", .selector = "hardthreshold"}})
    EXPECT_EQ(test::error_text<UserError>([&] { resolve_sparsifier(config, settings); }), wrong);
  EXPECT_NO_THROW(resolve_sparsifier({.sparsifier = "topk"}, settings)) << "does not read it";
}

}  // namespace
}  // namespace tw
