// Every registered model: sizes, errors, steps, the memory of its plan.
#include <gtest/gtest.h>

#include <map>

#include "models/model.h"
#include "tests/support/model_step.h"

namespace tw {
namespace {

using test::PlannedModel;

TEST(Models, HaveTheExpectedNumbersOfParameters) {
  const std::map<std::string, size_t> expected{
      {"resnet20", 269'722},    {"resnet32", 464'154}, {"resnet44", 658'586}, {"resnet56", 853'018},
      {"resnet110", 1'727'962}, {"vgg11", 9'231'114},  {"vgg13", 9'416'010},  {"vgg16", 14'728'266},
      {"vgg19", 20'040'522},    {"mlp", 820'874},      {"lenet", 62'006}};
  for (const auto& [name, count] : expected)
    EXPECT_EQ(Model(name, {}).arena().size(), count) << name;
}

const ModelSpec kImageNet{.image = {224, 224, 3}, .classes = 1000};

TEST(Models, HaveTorchvisionsNumbersOfParameters) {
  const std::map<std::string, size_t> expected{
      {"resnet18", 11'689'512},           {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},           {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},          {"vgg11_imagenet", 132'863'336},
      {"vgg13_imagenet", 133'047'848},    {"vgg16_imagenet", 138'357'544},
      {"vgg19_imagenet", 143'667'240},    {"vgg11_bn_imagenet", 132'868'840},
      {"vgg13_bn_imagenet", 133'053'736}, {"vgg16_bn_imagenet", 138'365'992},
      {"vgg19_bn_imagenet", 143'678'248}, {"alexnet", 61'100'840}};
  for (const auto& [name, count] : expected)
    EXPECT_EQ(Model(name, kImageNet).arena().size(), count) << name;
}

/// With zero_init every block starts as its shortcut: the network is a much shallower one.
TEST(Models, ZeroInitStartsBlocksAsTheirShortcuts) {
  for (const std::string name : {"resnet20", "resnet18", "resnet50"}) {
    const std::string last = name == "resnet50" ? "bn3.weight" : "bn2.weight";
    for (const bool zero : {false, true}) {
      PlannedModel p(name, 2, DType::f32, {.zero_init = zero});
      const ParameterArena& arena = p.model.arena();
      for (const Parameter& parameter : arena.parameters()) {
        if (!parameter.name.ends_with(last)) continue;
        std::vector<float> values(static_cast<size_t>(parameter.shape.numel()));
        test::copy_now(arena.value(parameter),
                       {values.data(), parameter.shape, DType::f32, Device::cpu});
        EXPECT_EQ(values[0], zero ? 0.0f : 1.0f) << parameter.name;
      }
      EXPECT_TRUE(std::isfinite(p.step())) << name;
    }
  }
}

TEST(Models, DecayWeightsOnlyUnlessAllParametersAreToDecay) {
  for (const bool all : {false, true})
    for (const char* name : {"resnet20", "vgg16", "mlp"}) {
      size_t vectors = 0;
      const Model model(name, {.decay_all = all});
      for (const Parameter& parameter : model.arena().parameters()) {
        const bool vector = parameter.shape.rank() == 1;
        EXPECT_EQ(parameter.decay, all || !vector) << name << " " << parameter.name;
        vectors += vector;
      }
      EXPECT_GT(vectors, 0u) << name;
    }
}

/// A test of every registered model; its name ends with the model's.
class Models : public testing::TestWithParam<std::string> {};

TEST_P(Models, DecayMatricesAndKernelsOnly) {
  const Model model(GetParam(), kImageNet);
  for (const Parameter& p : model.arena().parameters())
    EXPECT_EQ(p.decay, p.shape.rank() > 1) << p.name;
}

INSTANTIATE_TEST_SUITE_P(Registered, Models, testing::ValuesIn(models().names()),
                         [](const auto& test) { return test.param; });

TEST(Models, StatisticsAreThoseOfTheBatchNorms) {
  const Model model("resnet20", {});
  EXPECT_EQ(model.arena().statistics().size(), 2u * 19);
  EXPECT_EQ(model.arena().statistics()[0].name, "bn1.running_mean");
  EXPECT_EQ(model.arena().statistics()[1].name, "bn1.running_var");
  EXPECT_EQ(model.arena().statistics()[3].name, "layer1.0.bn1.running_var");
}

std::string message_of(const std::string& name, const ModelSpec& spec) {
  try {
    const Model model(name, spec);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Models, RejectImpossibleSpecs) {
  EXPECT_NE(message_of("vgg16", {.image = {31, 32, 3}}).find("(31, 32, 3)"), std::string::npos);
  EXPECT_NE(message_of("vgg16_imagenet", {}).find("(32, 32, 3)"), std::string::npos);
  EXPECT_NE(message_of("alexnet", {.image = {192, 224, 3}}).find("(192, 224, 3)"),
            std::string::npos);
  EXPECT_NE(message_of("lenet", {.image = {16, 15, 3}}).find("(16, 15, 3)"), std::string::npos);
  EXPECT_NE(message_of("resnet20", {.image = {0, 32, 3}}).find("(0, 32, 3)"), std::string::npos);
  EXPECT_NE(message_of("mlp", {.classes = 1}).find("1 classes"), std::string::npos);
  EXPECT_NE(message_of("resnet21", {}).find("nearest is \"resnet20\""), std::string::npos);
}

/// All models with fewer than 300,000 parameters, and `larger`; in the emulator, which would take a
/// minute for these, `emulated` instead.
std::vector<std::string> tested(const std::vector<std::string>& larger,
                                const std::vector<std::string>& emulated) {
  if (test::emulated()) return emulated;
  std::vector<std::string> names = larger;
  for (const std::string& name : models().names())
    if (message_of(name, {}).empty() && Model(name, {}).arena().size() < 300'000)
      names.push_back(name);
  return names;
}

class ModelShapes : public Models {};

TEST_P(ModelShapes, AcceptOtherImagesAndClasses) {
  PlannedModel p(GetParam(), 4, DType::f32, {.image = {36, 34, 1}, .classes = 7});
  EXPECT_TRUE(std::isfinite(p.step()));
  EXPECT_EQ(p.model.logits().shape, (Shape{4, 7}));
}

INSTANTIATE_TEST_SUITE_P(Registered, ModelShapes,
                         testing::ValuesIn(tested({"resnet18", "resnet50", "vgg11", "mlp"},
                                                  {"resnet20", "lenet"})),
                         [](const auto& test) { return test.param; });

class ModelSteps : public Models {};

TEST_P(ModelSteps, OverfitOneBatch) {
  if (test::emulated() && GetParam() != "lenet") GTEST_SKIP() << "too slow in the emulator";
  PlannedModel p(GetParam(), 8);
  const double before = p.step();
  double after = before;
  for (int i = 0; i < 10; ++i) {
    p.update(0.02f);
    after = p.step();
  }
  EXPECT_LT(after, 0.7 * before);
}

/// The result of a step does not depend on the previous contents of the workspace: no tensor is
/// read before it is written, and none is overwritten while it is still needed.
TEST_P(ModelSteps, DoNotDependOnOldMemory) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    PlannedModel p(GetParam(), 4, dtype);
    const double loss = p.step();
    const auto gradients = p.gradients();
    const auto workspace = p.model.planner().workspace();
    ASSERT_GT(workspace.size(), 0u);
    for (const std::span<std::byte> memory : {workspace, p.ctx.scratch()}) {
      std::vector<std::byte> ones(memory.size(), std::byte{0xff});  // NaN in every dtype
      const Shape shape{std::ssize(ones)};
      test::copy_now({ones.data(), shape, DType::u8, Device::cpu},
                     {memory.data(), shape, DType::u8, test::device()});
    }
    EXPECT_EQ(p.step(), loss);
    EXPECT_EQ(p.gradients(), gradients);
  }
}

TEST_P(ModelSteps, Bf16IsCloseToF32) {
  PlannedModel full(GetParam(), 8), half(GetParam(), 8, DType::bf16);
  const double loss = full.step();
  EXPECT_NEAR(half.step(), loss, 0.03 * loss);
  EXPECT_LT(test::distance(half.logits(), full.logits()), 0.04);
}

INSTANTIATE_TEST_SUITE_P(Registered, ModelSteps,
                         testing::ValuesIn(tested({"vgg11", "mlp"}, {"resnet20", "lenet"})),
                         [](const auto& test) { return test.param; });

TEST(Models, EvaluationUsesAndKeepsRunningStatistics) {
  PlannedModel p("resnet20", 8);
  for (int i = 0; i < 3; ++i) p.step();
  HostFloats before = p.model.arena().host_statistics();
  const std::vector<float> statistics(before.span().begin(), before.span().end());
  p.model.forward(p.pass);
  const auto training = p.logits();
  p.pass.training = false;
  std::ranges::copy(statistics, before.span().begin());
  before.write();
  p.model.forward(p.pass);
  const auto evaluation = p.logits();
  EXPECT_GT(test::distance(evaluation, training), 1e-3);
  const HostFloats now = p.model.arena().host_statistics();
  EXPECT_TRUE(std::ranges::equal(statistics, now.span()));
  p.model.forward(p.pass);
  EXPECT_EQ(p.logits(), evaluation);
}

TEST(Models, MicroBatchesAddUpToTheBatch) {
  for (const std::string name : {"mlp", "lenet"}) {
    PlannedModel whole(name, 12), part(name, 4);
    whole.step();
    for (int i = 0; i < 3; ++i) {
      test::fill_batch(part.model, 1, 4 * i);
      part.pass.accumulate = i > 0;
      part.step(1.0f / 3);
    }
    EXPECT_LT(test::distance(part.gradients(), whole.gradients()), 1e-5) << name;
  }
}

/// Backward needs two activations per convolution (4 bytes per element). All other tensors of a
/// step must fit into memory that these free. On a GPU, cuDNN's workspace for weight gradients that
/// run beside the rest of backward comes on top.
TEST(Models, PlanIsLittleMoreThanTheActivationsForBackward) {
  Context ctx(test::device());
  Model model("resnet20", {});
  const size_t bytes = model.plan(ctx, {.batch = 128}).workspace;
  const size_t kept = 128 * 4 * 2 * (7 * 32 * 32 * 16 + 6 * 16 * 16 * 32 + 6 * 8 * 8 * 64);
  const size_t beside = test::device() == Device::cpu ? 0 : size_t{16} << 20;
  EXPECT_LT(bytes, kept + kept / 20 + beside);
  const size_t again = model.plan(ctx, {.batch = 64}).workspace;
  EXPECT_LT(again, bytes / 2 + bytes / 10);
}

}  // namespace
}  // namespace tw
