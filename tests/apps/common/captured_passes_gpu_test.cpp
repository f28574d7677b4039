// Captured forward and backward give the same bits as the ops queued one by one.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/common/captured_step.h"
#include "engine/core/copy.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/relu.h"
#include "layers/sequential.h"
#include "tests/support/device.h"

namespace tw {
namespace {

constexpr int64_t kBatch = 4;
constexpr uint64_t kSteps = 4, kFirst = 5;

/// Dropout draws for the step.
LayerPtr dropping(ParameterArena& arena, const ModelSpec& spec) {
  auto net = std::make_unique<layers::Sequential>();
  net->add<layers::Linear>(arena, {.name = "first", .in = spec.image, .out = 64});
  net->add<layers::Relu>();
  net->add<layers::Dropout>({.rate = 0.5f, .stream = 0});
  net->add<layers::Linear>(arena,
                           {.name = "last", .in = {64}, .out = spec.classes, .logits = true});
  return net;
}
const bool registered = models().add({"dropping", "for this test", dropping});

class CapturedPassesOnGpu : public testing::TestWithParam<const char*> {
 protected:
  CapturedPassesOnGpu() : model(GetParam(), {}) {
    ctx.set_math({.deterministic = true});
    model.plan(ctx, {.batch = kBatch, .activations = DType::f32});
  }

  struct Outcome {
    std::vector<double> losses;
    std::vector<std::vector<float>> gradients;
    uint64_t launches = 0;
    bool operator==(const Outcome& other) const {
      return losses == other.losses && gradients == other.gradients;
    }
  };

  /// Steps kFirst, ... of one model; between them an evaluation and another batch.
  Outcome run(bool capture) {
    model.allocate(ctx, 1);
    CapturedPasses passes(ctx, model, capture);
    Outcome outcome;
    for (uint64_t step = kFirst; step < kFirst + kSteps; ++step) {
      const size_t bytes = model.images().bytes();
      std::vector<std::byte> images(bytes);
      for (size_t i = 0; i < bytes; ++i) images[i] = static_cast<std::byte>(i * (step + 3) % 251);
      const std::vector<int32_t> labels(kBatch, static_cast<int32_t>(step % 10));
      copy_bytes(ctx, images, {static_cast<std::byte*>(model.images().data), bytes});
      copy_bytes(ctx, std::as_bytes(std::span(labels)),
                 {static_cast<std::byte*>(model.labels().data), model.labels().bytes()});
      const PassArgs pass{.ctx = ctx, .seed = 7, .step = step};
      passes.queue_forward(pass, 1);
      outcome.losses.push_back(model.take_sums(ctx).loss);
      passes.backward(pass);
      const HostFloats gradients = model.arena().host_gradients();
      outcome.gradients.emplace_back(gradients.span().begin(), gradients.span().end());
      model.forward({.ctx = ctx, .training = false});
    }
    outcome.launches = passes.launches();
    return outcome;
  }

  Context ctx{test::device()};
  Model model;
};

TEST_P(CapturedPassesOnGpu, HaveTheBitsOfTheOps) {
  const Outcome expected = run(false), found = run(true);
  EXPECT_EQ(expected.launches, 0u);
  EXPECT_EQ(found.launches, 2 * (kSteps - 1)) << "the first step is queued op by op";
  EXPECT_TRUE(found == expected);
  EXPECT_NE(expected.losses.front(), expected.losses.back());
  EXPECT_TRUE(std::ranges::any_of(expected.gradients.back(), [](float g) { return g != 0; }));
}

INSTANTIATE_TEST_SUITE_P(Models, CapturedPassesOnGpu, testing::Values("dropping", "resnet20"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tw
