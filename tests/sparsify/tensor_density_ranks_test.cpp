// Density by tensor: what each tensor sends, and texts that name none.
#include "sparsify/tensor_density.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

// SgdRig has tensors of 500, 250 and 250 elements, layer0.weight to layer2.weight
constexpr size_t kElements = 1000;

SgdConfig by_tensor(const std::string& density_of, const std::string& sparsifier = kTopk) {
  return {.sparsifier = sparsifier, .density_of = density_of, .scope = Scope::layer};
}

TEST(TensorDensity, EachTensorSendsItsShare) {
  const GradientKind never_zero{"never zero",
                                [](uint32_t h, size_t) { return 1.0f + float(h % 99); }};
  run_ranks(2, [&](Context& ctx, Communicator& comm) {
    for (const size_t bytes : {size_t{0}, size_t{1} << 20}) {
      SgdConfig config = by_tensor("layer*=0.02,layer1.weight=1,layer2=0.2");
      config.bucket_bytes = bytes;
      SgdRig rig(ctx, comm, kElements, config);
      const MessageCounter traffic(comm);
      const StepReport report = rig.step(never_zero, {.density = 0.5});
      EXPECT_EQ(report.nnz, 10u + 250 + 50);
      EXPECT_EQ(report.k, report.nnz);
      const auto left = [&](size_t tensor) {
        const auto part = rig.arena.parameters()[tensor].in(rig.sgd->residual());
        return part.size() - static_cast<size_t>(std::ranges::count(part, 0.0f));
      };
      EXPECT_EQ(left(0), 490u);
      EXPECT_EQ(left(1), 0u);
      EXPECT_EQ(left(2), 200u);
      const SgdPlan plan(rig.arena, config, default_settings());
      EXPECT_EQ(plan.entries(0.5), report.nnz);
      EXPECT_EQ(plan.bytes_sent(2, 0.5), traffic.sums(ctx, comm).bytes);
    }
  });
}

TEST(TensorDensity, OtherTensorsHaveThatOfTheStep) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kElements, by_tensor("layer1=0.1"));
    EXPECT_EQ(rig.step(rounding_kind(), {.density = 0.5}).k, 250u + 25 + 125);
    EXPECT_EQ(rig.step(rounding_kind(), {.density = 1}).k, 500u + 25 + 250);
  });
}

TEST(TensorDensity, LosesNothingWithAnySelectorAndExchange) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    for (const Variant& variant : variants()) {
      if (!variant.conserves || selector_of(variant).empty()) continue;
      const std::string& exchange = sparsifiers().find(variant.sparsifier).value.exchange;
      // the others have one dimension
      const bool whole = sparsifiers().find(variant.sparsifier).value.small_tensors_dense;
      SgdConfig config =
          by_tensor(whole ? "layer0=0.3" : "layer0=0.3,layer1=1,layer2=0.01", variant.sparsifier);
      config.momentum = config.weight_decay = 0;
      if (exchanges().find(exchange).value.one_threshold(variant.settings)) config.bucket_bytes = 0;
      if (selectors().find(selector_of(variant)).value.shared_indices(variant.settings)) continue;
      SgdRig rig(ctx, comm, kElements, config, variant.settings);
      for (uint64_t step = 0; step < 2; ++step) {
        rig.set_gradients(exact_kinds()[1], step);
        std::vector<float> before(rig.sgd->residual().begin(), rig.sgd->residual().end());
        for (size_t i = 0; i < kElements; ++i) before[i] += rig.arena.gradients()[i];
        rig.sgd->step({.step = step, .lr = 0, .density = 0.05});
        const auto total = summed(ctx, comm, before),
                   behind = summed(ctx, comm, rig.sgd->residual());
        size_t wrong = 0;
        for (size_t i = 0; i < kElements; ++i)
          wrong += rig.arena.gradients()[i] + behind[i] != total[i];
        EXPECT_EQ(wrong, 0u) << variant.name << ", step " << step;
      }
    }
  });
}

TEST(TensorDensity, EveryTensorAtOneIsDense) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kElements, by_tensor("*=1")),
        dense(ctx, comm, kElements, {.scope = Scope::layer});
    for (uint64_t step = 0; step < 2; ++step) {
      rig.step(exact_kinds()[1], {.step = step, .density = 0.01});
      dense.step(exact_kinds()[1], {.step = step});
    }
    EXPECT_TRUE(same_bits(rig.arena.values(), dense.arena.values()));
  });
}

TEST(TensorDensity, RefusesWhatNamesNoTensorOrDensity) {
  ParameterArena arena;
  arena.add({.name = "conv1.weight", .shape = {8, 4}});
  arena.add({.name = "fc.weight", .shape = {8, 4}});
  const auto error = [&](const SgdConfig& config) {
    return test::error_text<UserError>([&] { SgdPlan(arena, config, default_settings()); });
  };
  EXPECT_EQ(error(by_tensor("fc.weigth=0.1")),
            "[train] density-of names fc.weigth, which no tensor that is selected from matches; "
            "nearest is \"fc.weight\"");
  for (const char* rules : {"fc=1,*=0.1", "fc=1,fc.weight=0.1,conv1=1", "fc=1,fc=1"})
    EXPECT_EQ(error(by_tensor(rules)),
              "[train] density-of: later patterns match all tensors of fc");
  // dgc sums tensors of one dimension whole
  arena.add({.name = "fc.bias", .shape = {8}});
  EXPECT_NE(error(by_tensor("fc.bias=0.5", "dgc")).find("density-of names fc.bias, which no"),
            std::string::npos);
  EXPECT_EQ(error(by_tensor("fc")),
            "[train] density-of has \"fc\"; expected TENSOR=DENSITY, such as fc=0.1");
  EXPECT_NE(error(by_tensor("fc=0.1,")).find("density-of has \"\";"), std::string::npos);
  for (const char* wrong : {"fc=0", "fc=2", "fc=x", "fc=", "fc=0.1x"})
    EXPECT_EQ(
        error(by_tensor(wrong)),
        fmt::format("[train] density-of has {}; expected a density above 0 and at most 1", wrong));
  EXPECT_NE(error({.sparsifier = kTopk, .density_of = "fc=1"}).find("scope layer"),
            std::string::npos);
  for (const char* sparsifier : {"oktopk", "gtopk", "exact"}) {
    SgdConfig config = by_tensor("fc=1", sparsifier);
    EXPECT_NE(error(config).find("needs bucket-mib 0"), std::string::npos);
    config.bucket_bytes = 0;
    SgdPlan(arena, config, default_settings());
  }
  EXPECT_NE(error(by_tensor("fc=1", "dense")).find("selects nothing"), std::string::npos);
}

}  // namespace
}  // namespace tw
