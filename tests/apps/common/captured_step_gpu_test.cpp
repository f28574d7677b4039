// A captured training step, and captured passes, give the same bits as the ops queued one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/common/captured_step.h"
#include "data/loader.h"
#include "data/wrappers.h"
#include "engine/core/copy.h"
#include "engine/io/weights.h"
#include "layers/activation.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/data.h"
#include "tests/support/decay_bounds.h"
#include "tests/support/device.h"

namespace tw {
namespace {

constexpr int64_t kStepBatch = 8, kStepCount = 5;
constexpr float kRate = 0.05f;

/// Images of one colour each; its label is the number of a sample, modulo the classes.
class Colours : public test::CountingDataset {
 public:
  Colours() : CountingDataset(64) {}
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    return CountingDataset::get(i, pixels) % 10;
  }
};

class CapturedStepOnGpu : public ::testing::TestWithParam<const char*> {
 protected:
  CapturedStepOnGpu() : model(GetParam(), {}) {
    ctx.set_math({.deterministic = true});
    model.plan(ctx, {.batch = kStepBatch, .activations = DType::bf16});
    model.allocate(ctx, 1);
  }

  std::vector<ops::LossSums> op_by_op() {
    Loader loader(data, {.batch = kStepBatch, .seed = 3, .threads = 0});
    loader.start(0);
    std::vector<ops::LossSums> sums;
    ParameterArena& arena = model.arena();
    Buffer momentum(ctx.device(), arena.size() * sizeof(float));
    for (uint64_t step = 0; step < kStepCount; ++step) {
      const Batch& batch = loader.next();
      copy(ctx, batch.images, model.images());
      copy(ctx, batch.labels, model.labels());
      // gradients that are read at once are computed on one stream
      const PassArgs pass{
          .ctx = ctx, .seed = 3 * 65536, .step = step, .on_gradient_ready = [](const Parameter&) {
          }};
      sums.push_back(model.forward(pass));
      model.backward(pass);
      for (const Parameter& p : arena.parameters())
        ops::sgd_update(ctx,
                        {.lr = kRate,
                         .momentum = static_cast<float>(sgd.momentum),
                         .weight_decay = p.decay ? static_cast<float>(sgd.weight_decay) : 0,
                         .nesterov = false,
                         .scale = 1},
                        kDecayAll, p.in(std::span<const float>(arena.gradients())),
                        p.in(momentum.as<float>()), p.in(arena.values()));
      model.refresh(ctx);
    }
    return sums;
  }

  /// All steps, in two calls.
  static std::vector<ops::LossSums> run(CapturedStep& step) {
    std::vector<ops::LossSums> sums;
    for (const size_t count : {2, 3})
      for (const auto& one : step.run(sums.size(), std::vector<float>(count, kRate)))
        sums.push_back(one);
    return sums;
  }

  std::shared_ptr<const Dataset> data = crop_flip(std::make_shared<Colours>());
  Context ctx{test::device()};
  SgdConfig sgd{.seed = 3};
  Model model;
};

TEST_P(CapturedStepOnGpu, HasTheBitsOfTheOps) {
  const auto expected = op_by_op();
  const uint64_t hash = weights_hash(model.arena());

  model.allocate(ctx, 1);
  const Buffer momentum(ctx.device(), model.arena().size() * sizeof(float));
  CapturedStep step(ctx, model, *data, sgd, momentum.as<float>());
  step.start_epoch(0, 0);
  const std::vector<ops::LossSums> sums = run(step);

  ASSERT_EQ(sums.size(), expected.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i].loss, expected[i].loss) << "step " << i;
    EXPECT_EQ(sums[i].top1, expected[i].top1) << "step " << i;
    EXPECT_EQ(sums[i].count, kStepBatch);
  }
  EXPECT_EQ(weights_hash(model.arena()), hash);
  ASSERT_NE(step.graph(), nullptr) << step.take_notice();
  EXPECT_EQ(step.graph()->launches(), kStepCount - 1) << "the first step is queued op by op";
  // a kernel each in the emulator: a node takes about as long as the work of a small one
  if (test::emulated() && std::string_view(GetParam()) == "resnet20") {
    EXPECT_LE(step.graph()->size(), 150u);
  }
  HostFloats after(ctx, momentum.as<float>());
  EXPECT_TRUE(std::ranges::any_of(after.span(), [](float m) { return m != 0; }));
}

TEST_P(CapturedStepOnGpu, TakesBatchesFromALoader) {
  const auto expected = op_by_op();
  const uint64_t hash = weights_hash(model.arena());

  model.allocate(ctx, 1);
  const Buffer momentum(ctx.device(), model.arena().size() * sizeof(float));
  Loader loader(data, {.batch = kStepBatch, .seed = 3, .device = test::device()});
  CapturedStep step(ctx, model, *data, sgd, momentum.as<float>(), &loader);
  step.start_epoch(1, 2);  // no batch of it is asked for
  step.start_epoch(0, 0);
  const std::vector<ops::LossSums> sums = run(step);
  ASSERT_EQ(sums.size(), expected.size());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i].loss, expected[i].loss) << i;
  EXPECT_EQ(weights_hash(model.arena()), hash);
}

TEST_P(CapturedStepOnGpu, MakesNoUpdateAfterANaN) {
  const Buffer momentum(ctx.device(), model.arena().size() * sizeof(float));
  CapturedStep step(ctx, model, *data, sgd, momentum.as<float>());
  step.start_epoch(0, 0);
  HostFloats values = model.arena().host_values();
  values.span()[1] = NAN;
  values.write();
  model.refresh(ctx);
  try {
    step.run(7, std::vector<float>(3, kRate));
    FAIL() << "nothing was thrown";
  } catch (const CollectiveFault& fault) {
    EXPECT_NE(std::string(fault.what()).find("(step 7)"), std::string::npos) << fault.what();
  }
  // no update was made
  const HostFloats after = model.arena().host_values();
  EXPECT_TRUE(std::equal(values.span().begin() + 2, values.span().end(), after.span().begin() + 2));
}

/// The emulator is slow; the ops of vgg11 and mlp are those of the others.
std::vector<const char*> captured_models() {
  std::vector<const char*> models = {"resnet20", "lenet", "dropping"};
  if (!test::emulated()) models.insert(models.end(), {"vgg11", "mlp"});
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, CapturedStepOnGpu, ::testing::ValuesIn(captured_models()),
                         [](const auto& model) { return std::string(model.param); });

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
