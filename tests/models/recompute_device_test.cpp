// Recomputation: less memory, the same bits.
#include <gtest/gtest.h>

#include "engine/core/cpu_features.h"
#include "tests/support/decay_bounds.h"
#include "tests/support/model_step.h"

namespace tw {
namespace {

/// The complete state after a few steps.
struct Trained {
  std::vector<double> losses;
  std::vector<float> gradients, values, statistics;
  bool operator==(const Trained&) const = default;
};

Trained train(const std::string& name, DType dtype, bool recompute, size_t& workspace) {
  Context ctx;
  Model model(name, {});
  workspace = model
                  .plan(ctx, {.batch = 4,
                              .activations = dtype,
                              .recompute = recompute,
                              .mean = {0.5f, 0.5f, 0.5f},
                              .deviation = {0.25f, 0.25f, 0.25f}})
                  .workspace;
  model.allocate(ctx, 1);
  std::vector<float> momentum(model.arena().size());
  Trained result;
  for (uint64_t step = 0; step < 3; ++step) {
    test::fill_batch(model, step);
    // previous contents of the workspace must not matter
    const auto memory = model.planner().workspace();
    std::memset(memory.data(), 0xff, memory.size());
    const PassArgs pass{.ctx = ctx, .seed = 3, .step = step};
    const auto sums = model.forward(pass);
    model.backward(pass);
    result.losses.push_back(sums.loss);
    const auto gradients = model.arena().gradients();
    result.gradients.assign(gradients.begin(), gradients.end());
    ops::sgd_update(ctx,
                    {.lr = 0.1f, .momentum = 0, .weight_decay = 0, .nesterov = false, .scale = 1},
                    kDecayAll, gradients, momentum, model.arena().values());
    model.refresh(ctx);
  }
  const auto values = model.arena().values(), statistics = model.arena().statistic_values();
  result.values.assign(values.begin(), values.end());
  result.statistics.assign(statistics.begin(), statistics.end());
  return result;
}

TEST(Recompute, SavesMemoryAndKeepsTheBits) {
  for (const std::string name : {"resnet20", "resnet18", "resnet50"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && !cpu_has_bf16()) continue;
      size_t kept = 0, recomputed = 0;
      const Trained plain = train(name, dtype, false, kept);
      EXPECT_TRUE(train(name, dtype, true, recomputed) == plain) << name;
      EXPECT_LT(recomputed, kept * 3 / 4) << name;
    }
  }
}

TEST(Recompute, ChangesNothingWithoutBlocks) {
  size_t kept = 0, recomputed = 0;
  EXPECT_TRUE(train("lenet", DType::f32, true, recomputed) ==
              train("lenet", DType::f32, false, kept));
  EXPECT_EQ(recomputed, kept);
}

}  // namespace
}  // namespace tw
