// Properties of every registered selector on one vector. A test runs a selector with all values of
// its settings; the name of the test ends with the selector.

#include <gtest/gtest.h>

#include "sparsify/kernels/candidates_cpu.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

TEST(TopK, EqualsAFullSort) {
  for (const auto& [name, u] : vectors())
    for (size_t k : {size_t{1}, size_t{200}, size_t{2000}, size_t{50'000}, u.size(), 2 * u.size()})
      EXPECT_EQ(select("topk", u, k).indices, sorted_top(u, k)) << name << ", k " << k;
}

TEST(TopK, IsExactWhenTheSampleMisleads) {
  Context ctx;
  std::vector<float> u(400'009);
  fill_random(ctx, distributions().at("gaussian"), 9, u);
  // sampled elements are huge, so the estimate is far above the k-th magnitude
  for (size_t i = 0; i < kSamples; ++i) u[sample_position(i, u.size())] = 1e6f;
  LogHistogram histogram;
  const size_t k = 100'000;
  const std::vector<float> zeros(u.size());
  EXPECT_GT(sampled_threshold(u, zeros, k, histogram), magnitude_bits(1e5f));
  EXPECT_EQ(select("topk", u, k).indices, sorted_top(u, k));
}

TEST(TopK, SamplesOncePerStratum) {
  for (size_t d : {size_t{1}, size_t{1000}, kSamples, kSamples + 1, size_t{25'557'032}}) {
    const size_t n = std::min(d, kSamples);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_GE(sample_position(i, d), i * d / n);
      EXPECT_LT(sample_position(i, d), (i + 1) * d / n);
    }
  }
}

size_t most_entries(Volume volume, size_t k, size_t d) {
  if (volume == Volume::any) return d;
  if (volume == Volume::at_most_2k) return 2 * k;
  return volume == Volume::at_most_k ? k + 1 : k;  // k may be rounded up
}

class Selectors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::erase_if(variants_, [](const Variant& v) { return selector_of(v) != GetParam(); });
    ASSERT_FALSE(variants_.empty()) << "no registered sparsifier uses selector " << GetParam();
  }
  static std::unique_ptr<Selector> make(Context& ctx, const Variant& variant) {
    return selectors().find(GetParam()).value(ctx, variant.settings, {});
  }

  std::vector<Variant> variants_ = selector_variants();
};

TEST_P(Selectors, KeepEveryBitOfUAndTheirDeclaredVolume) {
  const auto all = vectors();
  for (const Variant& variant : variants_) {
    Context ctx;
    const SelectorEntry& entry = selectors().find(GetParam()).value;
    const auto selector = make(ctx, variant);
    const bool shared = entry.shared_indices(variant.settings);
    for (const auto& [kind, u] : all)
      for (size_t k : {size_t{1}, size_t{200}, u.size(), 2 * u.size()}) {
        const testing::ScopedTrace trace(__FILE__, __LINE__,
                                         fmt::format("{}, {}, k {}", variant.name, kind, k));
        std::vector<float> g(u), e(u.size());
        for (size_t i = 0; i < u.size(); ++i) e[i] = u[i] - (g[i] = u[i] * 0.75f);
        const Selection got = select(*selector, ctx, g, e, k, 1000);
        EXPECT_EQ(got.info.nonfinite, SIZE_MAX);
        EXPECT_LE(got.indices.size(), most_entries(entry.volume(variant.settings), k, u.size()));
        std::vector<float> whole = got.residual;
        size_t wrong = 0;
        for (size_t j = 0; j < got.indices.size(); ++j) {
          wrong += j > 0 && got.indices[j] <= got.indices[j - 1];
          float& place = whole[got.indices[j] - 1000];
          wrong += place != 0 || (got.values[j] == 0 && !shared);
          place = got.values[j];
        }
        for (size_t i = 0; i < u.size(); ++i) wrong += whole[i] != g[i] + e[i];
        EXPECT_EQ(wrong, 0u);
      }
  }
}

/// |u|: their mean, standard deviation, maximum, and the number of non-zeros.
struct Magnitudes {
  explicit Magnitudes(std::span<const float> u) {
    const auto d = static_cast<double>(u.size());
    for (const float x : u) {
      mean += std::abs(double{x}) / d;
      most = std::max(most, std::abs(double{x}));
      nonzeros += x != 0;
    }
    for (const float x : u) deviation += std::pow(std::abs(double{x}) - mean, 2) / d;
    deviation = std::sqrt(deviation);
  }
  double mean = 0, deviation = 0, most = 0;
  size_t nonzeros = 0;
};

/// Whether the same positions of a rising and of a falling vector are selected, as by random draws.
bool ignores_magnitudes(Selector& selector, Context& ctx) {
  constexpr size_t d = 10'000, k = 200;
  std::vector<float> rising(d), falling(d), zeros(d);
  for (size_t i = 0; i < d; ++i) falling[d - 1 - i] = rising[i] = static_cast<float>(i + 1);
  const auto indices = select(selector, ctx, rising, zeros, k).indices;
  // whoever sends everything sends the same indices, too
  const bool some = !indices.empty() && indices.size() < d;
  return some && select(selector, ctx, falling, zeros, k).indices == indices;
}

/// The mean magnitude of what is selected is at least that of the whole vector: so it is for the
/// largest entries and for all above a threshold, of any vector, and for the largest of each chunk
/// if every chunk sends some. 1 % less is accepted, because a selector may compare bins of
/// magnitudes (LogHistogram) instead of magnitudes.
TEST_P(Selectors, PreferLargeMagnitudesOrDrawWithoutBias) {
  const auto all = vectors();
  for (const Variant& variant : variants_) {
    Context ctx;
    const SelectorEntry& entry = selectors().find(GetParam()).value;
    const auto selector = make(ctx, variant);
    const bool exact = entry.volume(variant.settings) == Volume::exactly_k;
    const bool shared = entry.shared_indices(variant.settings);
    const bool random = ignores_magnitudes(*selector, ctx);
    size_t selected = 0;
    for (const auto& [kind, u] : all) {
      const Magnitudes whole(u);
      for (size_t k : {size_t{1}, size_t{200}, size_t{20'000}, u.size(), 2 * u.size()}) {
        const testing::ScopedTrace trace(__FILE__, __LINE__,
                                         fmt::format("{}, {}, k {}", variant.name, kind, k));
        const auto got = select(*selector, ctx, u, std::vector<float>(u.size()), k);
        const Magnitudes sent(got.values);
        selected += sent.nonzeros;
        const size_t asked = std::min(k, u.size());
        // random draws that hit zeros are not sent
        if (exact && (!random || shared || whole.nonzeros == u.size())) {
          EXPECT_EQ(got.indices.size(), shared ? asked : std::min(k, whole.nonzeros));
        }
        if (!random) {
          const bool some_of_each = entry.chunk(variant.settings) >= u.size() / k;
          if (!got.values.empty() && some_of_each) {
            EXPECT_GE(sent.mean, 0.99 * whole.mean);
          }
        } else if (k >= 200 && whole.most <= 10 * whole.mean) {
          // without outliers, so that a mean of k draws is almost normally distributed
          const auto draws = static_cast<double>(asked);
          const double mean = sent.mean * static_cast<double>(got.values.size()) / draws;
          EXPECT_NEAR(mean, whole.mean, 6 * whole.deviation / std::sqrt(draws) + 1e-6 * whole.mean);
        }
      }
    }
    EXPECT_GT(selected, 0u) << variant.name << " selects nothing of any vector";
  }
}

TEST_P(Selectors, DoNotDependOnTheThreadCount) {
  for (const Variant& variant : variants_) {
    for (const auto& [kind, u] : vectors()) {
      const std::vector<float> zeros(u.size());
      Context one(Device::cpu, 1);
      const auto reference = select(*make(one, variant), one, u, zeros, 1000);
      for (int threads : {2, 3, 7}) {
        Context many(Device::cpu, threads);
        const auto got = select(*make(many, variant), many, u, zeros, 1000);
        EXPECT_EQ(got.indices, reference.indices) << variant.name << ", " << kind;
        EXPECT_TRUE(same_bits(got.residual, reference.residual)) << variant.name << ", " << kind;
      }
    }
  }
}

TEST_P(Selectors, NameTheFirstNonFinite) {
  for (const Variant& variant : variants_) {
    Context ctx(Device::cpu, 2);
    for (float bad : {NAN, -NAN, INFINITY, -INFINITY})
      for (size_t d : {size_t{1}, size_t{100}, size_t{100'000}}) {
        std::vector<float> u(d, 1.0f);
        u[d - 1] = u[d / 2] = bad;
        const auto selector = make(ctx, variant);
        const SelectInfo info = select(*selector, ctx, u, std::vector<float>(d), 10).info;
        EXPECT_EQ(info.nonfinite, d / 2) << variant.name << ", d " << d;
        EXPECT_TRUE(same_bits({&info.nonfinite_value, 1}, {&bad, 1})) << variant.name;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, Selectors, testing::ValuesIn(selectors().names()),
                         [](const auto& test) { return test.param; });

TEST(Selectors, AppendToTheOutput) {
  Context ctx;
  const auto selector = selectors().find("topk").value(ctx, default_settings(), {});
  SparseVector out;
  std::vector<float> g{1, -3, 2}, e(3), g2{0, 5}, e2(2);
  selector->select(ctx, {.g = g, .e = e, .k = 2}, out);
  selector->select(ctx, {.g = g2, .e = e2, .k = 2, .base = 3}, out);
  EXPECT_EQ(std::vector(out.index_span().begin(), out.index_span().end()),
            (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_EQ(std::vector(out.value_span().begin(), out.value_span().end()),
            (std::vector<float>{-3, 2, 5}));
}

TEST(Candidates, ReuseMemoryOfALongerVector) {
  Context ctx(Device::cpu, 3);
  std::vector<float> u(100'000, 1.0f), shorter(100, 1.0f);
  HostCandidates candidates;
  const uint32_t one = magnitude_bits(1.0f), lower[] = {magnitude_bits(0.5f)};
  candidates.collect(ctx, {}, u, one, lower);
  EXPECT_EQ(candidates.count(), u.size());
  const float* memory = candidates.runs().back().values.data();
  candidates.collect(ctx, {}, shorter, one, lower);
  EXPECT_EQ(candidates.count(), 100u);
  EXPECT_EQ(candidates.reaching(one), 100u);
  candidates.collect(ctx, {}, u, one + 1, lower);
  EXPECT_EQ(candidates.count(), 0u);
  EXPECT_EQ(candidates.reaching(lower[0]), u.size());
  EXPECT_EQ(candidates.runs().back().values.data(), memory);
}

TEST(Selectors, EntriesToKeepRoundsDownToAtLeastOne) {
  EXPECT_EQ(entries_to_keep(0.001, 25'557'032), 25'557u);
  EXPECT_EQ(entries_to_keep(0.001, 10), 1u);
  EXPECT_EQ(entries_to_keep(1.0, 10), 10u);
  EXPECT_EQ(entries_to_keep(0.25, 15), 3u);
}

TEST(SelectAll, TakesAllEntries) {
  Context ctx;
  SparseVector out;
  const std::vector<float> g{1, 0, -2, 3};
  std::vector<float> e{0, 0, 2, 1};
  EXPECT_EQ(select_all(ctx, {.g = g, .e = e, .base = 5}, out).nonfinite, SIZE_MAX);
  EXPECT_EQ(std::vector(out.index_span().begin(), out.index_span().end()),
            (std::vector<uint32_t>{5, 6, 7, 8}));
  EXPECT_EQ(std::vector(out.value_span().begin(), out.value_span().end()),
            (std::vector<float>{1, 0, 0, 4}));
  EXPECT_EQ(e, std::vector<float>(4));
}

}  // namespace
}  // namespace tw
