// Ranks on a GPU give the same sums and residuals as ranks on the CPU, bit by bit.
#include <gtest/gtest.h>

#include "engine/core/copy.h"
#include "tests/support/device.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

std::vector<float> fetched(Context& ctx, std::span<const float> x) {
  std::vector<float> host(x.size());
  copy_to_host(ctx, x, host);
  return host;
}

/// SgdRig, on a device.
class DeviceRig {
 public:
  DeviceRig(Context& ctx, Communicator& comm, size_t d, const SgdConfig& config,
            const Settings& settings)
      : ctx_(ctx), comm_(comm) {
    const auto half = static_cast<int64_t>(d / 2), rest = static_cast<int64_t>(d) - half;
    if (half > 0) arena.add({.name = "a.weight", .shape = matrix_shape(d / 2), .decay = false});
    arena.add({.name = "b.bias", .shape = {rest}});
    arena.allocate(ctx, 1);
    sgd = std::make_unique<SyncSgd>(ctx, comm, arena, config, settings);
  }

  StepReport step(const GradientKind& kind, const StepInput& input) {
    std::vector<float> g(arena.size());
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = SgdRig::gradient(kind, comm_.rank(), input.step, i);
    copy_to_device(ctx_, g, arena.gradients());
    return sgd->step(input);
  }
  std::vector<float> sum() { return fetched(ctx_, arena.gradients()); }
  std::vector<float> residual() { return fetched(ctx_, sgd->residual()); }
  std::vector<float> values() { return fetched(ctx_, arena.values()); }

  ParameterArena arena;
  std::unique_ptr<SyncSgd> sgd;

 private:
  Context& ctx_;
  Communicator& comm_;
};

/// One kind with exact sums and one with rounded sums.
std::vector<GradientKind> few_kinds() { return {exact_kinds().front(), rounding_kind()}; }

class SyncSgdOnGpu : public testing::TestWithParam<Variant> {};

TEST_P(SyncSgdOnGpu, GivesTheSumsAndResidualsOfTheCpu) {
  const Variant& variant = GetParam();
  const Sparsifier& sparsifier = sparsifiers().find(variant.sparsifier).value;
  const bool momentum_before = sparsifier.momentum_before;
  const bool at_root = sparsifier.exchange == "root";  // the other ranks hold parts of the sum
  for (const int ranks : {1, 3, 4, 16}) {              // 2 and 8 take the paths of 4 and 16
    run_on_threads(ranks, [&](Communicator& comm) {
      Context cpu, gpu(test::device());
      for (const size_t d : {size_t{1}, size_t{1000}, size_t{20'011}}) {
        if (ranks == 16 && d != 1000) continue;
        if (test::emulated() && ranks == 4 && d > 1000) continue;  // covered by 3 ranks
        // three emulated ranks run every kind on 1 and 1000 elements
        const bool few = test::emulated() && ranks > 1 && (ranks > 3 || d > 1000);
        for (const double density : {0.01, 1.0})
          for (const GradientKind& kind : few ? few_kinds() : all_kinds()) {
            const testing::ScopedTrace trace(
                __FILE__, __LINE__,
                fmt::format("{}, {}, d {}, density {}, rank {} of {}", variant.name, kind.name, d,
                            density, comm.rank(), ranks));
            const SgdConfig config{.sparsifier = variant.sparsifier, .bucket_bytes = 1024};
            DeviceRig expected(cpu, comm, d, config, variant.settings);
            DeviceRig found(gpu, comm, d, config, variant.settings);
            // differently rounded momentum would change the vectors of later steps
            for (uint64_t step = 0; step < (momentum_before ? 1 : 3); ++step) {
              const StepInput input{.step = step, .lr = 0.5, .density = density};
              const StepReport on_cpu = expected.step(kind, input),
                               on_gpu = found.step(kind, input);
              EXPECT_EQ(on_gpu.nnz, on_cpu.nnz);
              EXPECT_EQ(on_gpu.bytes_sent, on_cpu.bytes_sent);
              if (comm.rank() == 0 || !at_root) {
                EXPECT_TRUE(same_bits(found.sum(), expected.sum())) << "step " << step;
              }
              EXPECT_TRUE(same_bits(found.residual(), expected.residual())) << "step " << step;
            }
            const std::vector<float> a = found.values(), b = expected.values();
            float largest = 0;
            for (const float x : b) largest = std::max(largest, std::abs(x));
            for (size_t i = 0; i < d; ++i) EXPECT_NEAR(a[i], b[i], 1e-6 * largest + 1e-40);
          }
      }
    });
  }
}

TEST_P(SyncSgdOnGpu, ReportsANaN) {
  run_on_threads(2, [&](Communicator& comm) {
    Context gpu(test::device());
    DeviceRig rig(gpu, comm, 1000, {.sparsifier = GetParam().sparsifier}, GetParam().settings);
    static const GradientKind bad = {"bad",
                                     [](uint32_t, size_t i) { return i == 700 ? NAN : 1.0f; }};
    const auto said =
        test::error_text<CollectiveFault>([&] { rig.step(bad, {.step = 3, .density = 0.01}); });
    EXPECT_NE(said.find("rank 0: gradient of b.bias is nan at element 200 (step 3)"),
              std::string::npos)
        << said;
  });
}

TEST(Ef21OnGpu, HasTheEstimatesAndSumsOfTheCpu) {
  run_on_threads(3, [&](Communicator& comm) {
    Context cpu, gpu(test::device());
    const SgdConfig config{.sparsifier = "topk", .ef21 = true};
    DeviceRig expected(cpu, comm, 1000, config, default_settings());
    DeviceRig found(gpu, comm, 1000, config, default_settings());
    for (uint64_t step = 0; step < 3; ++step) {
      const StepInput input{.step = step, .lr = 0.5, .density = 0.01};
      expected.step(exact_kinds().front(), input);
      found.step(exact_kinds().front(), input);
      EXPECT_EQ(found.sum(), expected.sum());
      EXPECT_EQ(found.residual(), expected.residual());
      EXPECT_EQ(fetched(gpu, found.sgd->estimates()), fetched(cpu, expected.sgd->estimates()));
    }
    EXPECT_NE(found.sum(), std::vector<float>(1000));
  });
}

/// Without those of wire formats, which change no kernel: they would repeat the default variant.
std::vector<Variant> variants_with_kernels() {
  std::vector<Variant> all = variants();
  std::erase_if(all, [](const Variant& v) { return v.name.find("wire.") != std::string::npos; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, SyncSgdOnGpu, testing::ValuesIn(variants_with_kernels()), test_name);

}  // namespace
}  // namespace tw
