// Every selector gives the same bits on a GPU as on the CPU.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/core/copy.h"
#include "sparsify/kernels/candidates.h"
#include "tests/support/owned_tensor.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

using test::OwnedTensor;

/// Floats on the device.
class OnDevice {
 public:
  explicit OnDevice(std::span<const float> x)
      : memory_({static_cast<int64_t>(x.size()) + kOff}, DType::f32), size_(x.size()) {
    copy_to_device(copies(), x, span());
  }
  /// A slice of a model need not be aligned to 16 bytes.
  std::span<float> span() const { return memory_.floats().subspan(kOff); }
  std::vector<float> get() const {
    std::vector<float> x(size_);
    test::wait_for_device();
    copy_to_host(copies(), span(), x);
    return x;
  }

 private:
  static Context& copies() {
    static Context ctx(test::device());
    return ctx;
  }

  static constexpr int64_t kOff = 1;
  OwnedTensor memory_;
  size_t size_;
};

struct Kind {
  std::string name;
  std::function<float(size_t)> value;
};

std::vector<Kind> kinds() {
  const auto drawn = [](const char* name) {
    const Draw draw = distributions().at(name);
    return Kind{name, [draw](size_t i) { return draw(Philox(11, Purpose::test)(i)); }};
  };
  return {drawn("gaussian"),
          drawn("laplace"),
          drawn("t3"),
          {"ties", [](size_t i) { return static_cast<float>(int(i * 7919 % 11) - 5); }},
          {"equal", [](size_t) { return -0.5f; }},
          {"zeros", [](size_t) { return 0.0f; }},
          {"few non-zeros", [](size_t i) { return i % 20011 == 7 ? 1.0f : 0.0f; }},
          {"denormal", [](size_t i) { return static_cast<float>(i * 7919 % 1000) * -0x1p-149f; }}};
}

constexpr size_t kLengths[] = {1, 2, 257, 8192, 8193, 100'003, size_t{1} << 20};

class SelectorsOnGpu : public testing::TestWithParam<Variant> {
 protected:
  std::string selector() const { return selector_of(GetParam()); }
};

TEST_P(SelectorsOnGpu, SelectTheEntriesOfTheCpu) {
  Context cpu, gpu(test::device());
  const auto make = [&](Context& ctx) {
    return selectors().find(selector()).value(ctx, GetParam().settings, {.rank = 1});
  };
  const auto on_cpu = make(cpu), on_gpu = make(gpu);  // reused in every step, as in training
  for (const auto& [kind, value] : kinds())
    for (const size_t d : kLengths) {
      if (test::emulated() && d > (kind == "laplace" || kind == "ties" ? 200'000 : 10'000))
        continue;
      std::vector<float> u(d);
      for (size_t i = 0; i < d; ++i) u[i] = value(i);
      for (const size_t k : {size_t{1}, d / 1000, d / 3, d, 2 * d}) {
        if (k == 0) continue;
        SCOPED_TRACE(fmt::format("{}, {}, d {}, k {}", GetParam().name, kind, d, k));
        std::vector<float> g(d), e(d);
        for (size_t i = 0; i < d; ++i) {
          g[i] = 0.75f * u[i];
          e[i] = u[i] - g[i];
        }
        const OnDevice device_g(g), device_e(e);
        const double density = static_cast<double>(k) / static_cast<double>(d);
        SparseVector expected, found;
        const SelectStep in{.g = g, .e = e, .k = k, .density = density, .base = 70, .step = 3};
        SelectStep there = in;
        there.g = device_g.span();
        there.e = device_e.span();
        const SelectInfo info = on_cpu->select(cpu, in, expected);
        EXPECT_EQ(on_gpu->select(gpu, there, found).nonfinite, info.nonfinite);
        EXPECT_TRUE(std::ranges::equal(found.index_span(), expected.index_span()))
            << found.count << " entries, " << expected.count << " on the CPU";
        EXPECT_TRUE(same_bits(found.value_span(), expected.value_span()));
        EXPECT_TRUE(same_bits(device_e.get(), e));
        if (HasFailure()) return;
      }
    }
}

TEST_P(SelectorsOnGpu, NameTheFirstNonFinite) {
  Context gpu(test::device());
  const auto selector = selectors().find(this->selector()).value(gpu, GetParam().settings, {});
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (const size_t d : {size_t{1}, size_t{100}, size_t{100'000}}) {
      std::vector<float> u(d, 1.0f);
      u[d - 1] = u[d / 2] = bad;
      const OnDevice g(u), e(std::vector<float>(d, 0.0f));
      SparseVector out;
      const SelectInfo info = selector->select(
          gpu, {.g = g.span(), .e = e.span(), .k = 10, .density = std::min(1.0, 10 / double(d))},
          out);
      EXPECT_EQ(info.nonfinite, d / 2) << GetParam().name << ", d " << d;
      EXPECT_EQ(std::isnan(info.nonfinite_value), std::isnan(bad));
      EXPECT_EQ(out.count, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(All, SelectorsOnGpu, testing::ValuesIn(selector_variants()), test_name);

/// Selects the k largest of u on both devices.
void expect_top_of_cpu(std::span<const float> u, size_t k) {
  Context cpu, gpu(test::device());
  std::vector<float> e(u.size());
  const OnDevice device_g(u), device_e(e);
  const auto make = [](Context& ctx) {
    return selectors().find("topk").value(ctx, default_settings(), {});
  };
  SparseVector expected, found;
  make(cpu)->select(cpu, {.g = u, .e = e, .k = k}, expected);
  make(gpu)->select(gpu, {.g = device_g.span(), .e = device_e.span(), .k = k}, found);
  EXPECT_TRUE(std::ranges::equal(found.index_span(), expected.index_span()))
      << found.count << " entries, " << expected.count << " on the CPU";
  EXPECT_TRUE(same_bits(device_e.get(), e));
}

TEST(TopKOnGpu, TakesAnyNumberOfEntriesOfAChunk) {
  for (const size_t entries : {31, 32, 33, 34}) {
    SCOPED_TRACE(entries);
    std::vector<float> u(3000);
    for (size_t i = 0; i < entries; ++i) u[1100 + 7 * i] = static_cast<float>(i + 1);
    expect_top_of_cpu(u, entries);
  }
}

TEST(TopKOnGpu, TakesKEntriesWhereTheSampleMisleads) {
  std::vector<float> u(50'000, 1.0f);
  for (size_t i = 0; i < kSamples; ++i) u[sample_position(i, u.size())] = 5;
  expect_top_of_cpu(u, kSamples + 1000);
}

TEST(OkTopKOnGpu, TakesEntriesThatReachTheThreshold) {
  Context cpu, gpu(test::device());
  std::vector<float> g(100'003), e(g.size());
  fill_random(cpu, distributions().at("gaussian"), 5, g);
  const OnDevice device_g(g), device_e(e);
  const auto make = [](Context& ctx) {
    return selectors().find("oktopk").value(ctx, default_settings(), {});
  };
  SparseVector expected, found;
  make(cpu)->select(cpu, {.g = g, .e = e, .k = 100, .density = 1e-3, .threshold = 2.5f}, expected);
  make(gpu)->select(
      gpu,
      {.g = device_g.span(), .e = device_e.span(), .k = 100, .density = 1e-3, .threshold = 2.5f},
      found);
  EXPECT_GT(found.count, 1000u);
  EXPECT_TRUE(std::ranges::equal(found.index_span(), expected.index_span()));
  EXPECT_TRUE(same_bits(device_e.get(), e));
}

/// Slices of a vector, more than a launch takes, of many lengths.
class SlicesOnGpu : public testing::Test {
 protected:
  SlicesOnGpu() {
    for (size_t i = 0; i < 40; ++i) lengths.push_back(1 + i * i * i % 2503);
    lengths[17] = 9000;
  }
  /// The slices of g and e, with an odd base each.
  std::vector<SelectStep> slices(std::span<const float> g, std::span<float> e, double density) {
    std::vector<SelectStep> all;
    size_t at = 0;
    for (const size_t n : lengths) {
      all.push_back({.g = g.subspan(at, n),
                     .e = e.subspan(at, n),
                     .k = entries_to_keep(density, n),
                     .density = density,
                     .base = static_cast<uint32_t>(at)});
      at += n;
    }
    return all;
  }
  std::vector<float> drawn() {
    Context cpu;
    std::vector<float> g(std::accumulate(lengths.begin(), lengths.end(), size_t{0}));
    fill_random(cpu, distributions().at("t3"), 5, g);
    return g;
  }
  static std::unique_ptr<Selector> make(Context& ctx) {
    return selectors().find("dgc").value(ctx, default_settings(), {});
  }

  std::vector<size_t> lengths;
};

TEST_F(SlicesOnGpu, OfDgcHaveTheEntriesOfTheCpu) {
  Context cpu, gpu(test::device());
  const auto on_cpu = make(cpu), on_gpu = make(gpu);
  const std::vector<float> g = drawn();
  for (const double density : {0.001, 0.01, 0.25}) {  // small samples miss k at the highest
    std::vector<float> e(g.size(), 0.125f);
    const OnDevice device_g(g), device_e(e);
    SparseVector expected, found;
    std::vector<SelectInfo> infos(lengths.size()), none(lengths.size());
    on_cpu->select_slices(cpu, slices(g, e, density), none, expected);
    on_gpu->select_slices(gpu, slices(device_g.span(), device_e.span(), density), infos, found);
    EXPECT_TRUE(std::ranges::equal(found.index_span(), expected.index_span())) << density;
    EXPECT_TRUE(same_bits(found.value_span(), expected.value_span())) << density;
    EXPECT_TRUE(same_bits(device_e.get(), e)) << density;
  }
}

TEST_F(SlicesOnGpu, OfDgcNameTheirOwnNonFinite) {
  Context gpu(test::device());
  std::vector<float> g = drawn();
  const size_t slice = 30,
               first = std::accumulate(lengths.begin(), lengths.begin() + slice, size_t{0});
  g[first + 3] = NAN;
  const OnDevice device_g(g), device_e(std::vector<float>(g.size()));
  SparseVector found;
  std::vector<SelectInfo> infos(lengths.size());
  make(gpu)->select_slices(gpu, slices(device_g.span(), device_e.span(), 0.01), infos, found);
  for (size_t i = 0; i < infos.size(); ++i)
    EXPECT_EQ(infos[i].nonfinite, i == slice ? 3 : SIZE_MAX) << "slice " << i;
}

TEST(SelectAllOnGpu, TakesAllEntries) {
  Context gpu(test::device());
  const OnDevice g(std::vector<float>{1, 0, -2, 3}), e(std::vector<float>{0, 0, 2, 1});
  SparseVector out;
  EXPECT_EQ(select_all(gpu, {.g = g.span(), .e = e.span(), .base = 5}, out).nonfinite, SIZE_MAX);
  EXPECT_EQ(std::vector(out.index_span().begin(), out.index_span().end()),
            (std::vector<uint32_t>{5, 6, 7, 8}));
  EXPECT_EQ(std::vector(out.value_span().begin(), out.value_span().end()),
            (std::vector<float>{1, 0, 0, 4}));
  EXPECT_EQ(e.get(), std::vector<float>(4));
}

}  // namespace
}  // namespace tw
