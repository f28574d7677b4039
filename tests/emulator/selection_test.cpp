// What a selection on a GPU costs: kernels, and bytes of memory compared with e += g. A GPU that
// refuses cooperative launches gives the same bits.
#include <gtest/gtest.h>

#include "apps/common/distributions.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/ops/vector.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"
#include "tests/emulator/cooperative.h"
#include "tests/emulator/stream.h"
#include "tests/emulator/traffic.h"

namespace tw {
namespace {

constexpr size_t kElements = (size_t{1} << 18) + 77, kEntries = kElements / 1000;

std::vector<float> drawn(const std::string& distribution, size_t n) {
  Context cpu;
  std::vector<float> x(n);
  fill_random(cpu, distributions().at(distribution), 3, x);
  return x;
}

/// A gradient and a residual of zeros, on the device.
struct Vectors {
  explicit Vectors(std::span<const float> gradient)
      : g(Device::cuda, gradient.size_bytes()), e(Device::cuda, gradient.size_bytes()) {
    copy_to_device(ctx, gradient, g.as<float>());
    ops::fill(ctx, e.as<float>(), 0);
    ctx.synchronize();
  }
  SelectStep step(size_t k) {
    const size_t n = g.as<float>().size();
    return {.g = g.as<float>(),
            .e = e.as<float>(),
            .k = k,
            .density = static_cast<double>(k) / static_cast<double>(n)};
  }
  Context ctx{Device::cuda};
  Buffer g, e;
};

struct Cost {
  uint64_t launches, bytes;
};

template <class Call>
Cost cost_of(Context& ctx, const Call& call) {
  ctx.synchronize();
  const Cost before{emulator::launches(), emulator::bytes_accessed()};
  call();
  ctx.synchronize();
  return {emulator::launches() - before.launches, emulator::bytes_accessed() - before.bytes};
}

struct Limit {
  const char *selector, *distribution;
  uint64_t launches;
  double passes;  ///< over memory, one is e += g
};

class CostOfSelection : public testing::TestWithParam<Limit> {};

TEST_P(CostOfSelection, IsCountedInLaunchesAndPasses) {
  const Limit limit = GetParam();
  Vectors vectors(drawn(limit.distribution, kElements));
  Context& ctx = vectors.ctx;
  const Cost addition =
      cost_of(ctx, [&] { ops::add(ctx, vectors.g.as<float>(), vectors.e.as<float>()); });
  EXPECT_EQ(addition.bytes, 3 * kElements * sizeof(float));
  EXPECT_EQ(addition.launches, 1u);

  const auto selector = selectors().find(limit.selector).value(ctx, default_settings(), {});
  SparseVector out;
  const Cost cost = cost_of(ctx, [&] { selector->select(ctx, vectors.step(kEntries), out); });
  const double passes = static_cast<double>(cost.bytes) / static_cast<double>(addition.bytes);
  EXPECT_GT(out.count, kEntries / 2);
  EXPECT_GE(passes, 1);
  EXPECT_LE(passes, limit.passes) << cost.bytes << " bytes";
  EXPECT_LE(cost.launches, limit.launches);
  RecordProperty("passes", fmt::format("{:.3f}", passes));
  RecordProperty("launches", static_cast<int>(cost.launches));
}

INSTANTIATE_TEST_SUITE_P(
    Selectors, CostOfSelection,
    testing::Values(Limit{"topk", "gaussian", 3, 1.2}, Limit{"topk", "laplace", 3, 1.2},
                    Limit{"gaussiank", "gaussian", 6, 1.7}, Limit{"gaussiank", "laplace", 6, 1.7},
                    Limit{"gaussiank", "t3", 6, 1.7}),
    [](const auto& p) { return fmt::format("{}_{}", p.param.selector, p.param.distribution); });

TEST(RefusedCooperativeLaunch, GivesTheSameSelection) {
  const std::vector<float> gradient = drawn("laplace", 50'000);
  SparseVector found[2];
  std::vector<float> left[2];
  uint64_t launches[2];
  for (const bool refuse : {false, true}) {
    Vectors vectors(gradient);
    const auto selector = selectors().find("topk").value(vectors.ctx, default_settings(), {});
    emulator::refuse_cooperative() = refuse;
    launches[refuse] = cost_of(vectors.ctx, [&] {
                         selector->select(vectors.ctx, vectors.step(100), found[refuse]);
                       }).launches;
    emulator::refuse_cooperative() = false;
    left[refuse].resize(gradient.size());
    copy_to_host(vectors.ctx, vectors.e.as<float>(), left[refuse]);
  }
  EXPECT_EQ(launches[0], 3u);
  EXPECT_EQ(launches[1], 7u) << "three digits, a count and a move instead of one launch";
  EXPECT_EQ(found[0].count, 100u);
  EXPECT_TRUE(std::ranges::equal(found[0].index_span(), found[1].index_span()));
  EXPECT_TRUE(std::ranges::equal(found[0].value_span(), found[1].value_span()));
  EXPECT_EQ(left[0], left[1]);
}

}  // namespace
}  // namespace tw
