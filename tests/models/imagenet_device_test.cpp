// The ImageNet models against torchvision's: names, shapes, logits and gradients.
// scripts/golden/imagenet.py wrote the reference (float64).
#include <map>

#include "engine/core/hash.h"
#include "tests/support/golden.h"

namespace tw {
namespace {

using test::Json;

constexpr int64_t kSize = 224, kClasses = 1000;

/// A model with the golden weights and batch.
struct GoldenImageNet {
  explicit GoldenImageNet(const std::string& name)
      : model(name, {.image = {kSize, kSize, 3}, .classes = kClasses}) {
    const Json golden = test::read_golden("imagenet");
    model.plan(ctx, {.batch = golden["batch"].get<int64_t>(),
                     .mean = golden["mean"].get<std::vector<float>>(),
                     .deviation = golden["deviation"].get<std::vector<float>>()});
    model.allocate(ctx, std::nullopt);
    ParameterArena& arena = model.arena();
    for (const Parameter& p : arena.parameters()) test::set_parameter(p, arena.value(p));
    for (const Parameter& p : arena.statistics()) test::set_parameter(p, arena.statistic(p));
    model.refresh(ctx);
    test::set_batch(model, 0);
  }

  /// Batch norms that keep every channel well away from the kinks of ReLU.
  void make_steady() {
    ParameterArena& arena = model.arena();
    HostFloats values = arena.host_values();
    std::map<std::string, const Parameter*> all;
    for (const Parameter& p : arena.parameters()) all[p.name] = &p;
    const bool bottleneck = all.contains("layer1.0.bn3.bias");
    for (const Parameter& s : arena.statistics()) {
      if (!s.name.ends_with(".running_mean")) continue;
      const std::string prefix = s.name.substr(0, s.name.rfind('.'));
      const Parameter &weight = *all.at(prefix + ".weight"), &bias = *all.at(prefix + ".bias");
      const bool join = prefix.starts_with("layer") && prefix.ends_with(bottleneck ? "bn3" : "bn2");
      const bool shortcut = prefix.ends_with("downsample.1");
      const test::Words scale(weight.name), active(bias.name);
      for (size_t i = 0; i < weight.length(); ++i) {
        weight.in(values.span())[i] = static_cast<float>(0.15 + 0.03 * scale.unit(i));
        const float level = active[i] % 4 == 0 ? 1.0f : join ? -10.0f : -1.0f;
        bias.in(values.span())[i] = shortcut ? 0.5f : level;
      }
    }
    values.write();
    model.refresh(ctx);
  }

  Context ctx{test::device()};
  Model model;
};

/// ||ours - golden|| / ||golden||
double relative_error(const std::string& name, std::span<const float> ours, const Json& golden) {
  return test::error_norm(name, {ours.begin(), ours.end()}, golden) / golden["norm"].get<double>();
}

class ImageNetModel : public testing::TestWithParam<const char*> {};

TEST_P(ImageNetModel, LogitsMatchTorchvision) {
  if (test::emulated() && GetParam() != std::string_view("resnet18"))
    GTEST_SKIP() << "takes the emulator minutes";
  const Json golden = test::read_golden("imagenet")["models"][GetParam()];
  GoldenImageNet net(GetParam());
  EXPECT_EQ(net.model.arena().size(), golden["parameters"].get<size_t>());
  net.model.forward({.ctx = net.ctx, .training = false});
  const double error =
      relative_error("logits", HostFloats(net.ctx, net.model.logits().as<float>()).span(), golden);
  EXPECT_LE(error, 1e-4);
  RecordProperty("relative_error", fmt::format("{:.2e}", error));
}

TEST_P(ImageNetModel, NamesAndShapesMatchTorchvision) {
  const Json golden = test::read_golden("imagenet")["models"][GetParam()];
  const Model model(GetParam(), {.image = {kSize, kSize, 3}, .classes = kClasses});
  const ParameterArena& arena = model.arena();
  std::string layout;
  for (const auto* list : {&arena.parameters(), &arena.statistics()})
    for (const Parameter& p : *list) layout += fmt::format("{} {}\n", p.name, exported_shape(p));
  EXPECT_EQ(golden["layout"], fmt::format("{:016x}", Hash().add(layout).value())) << layout;
}

INSTANTIATE_TEST_SUITE_P(All, ImageNetModel,
                         testing::Values("resnet18", "resnet34", "resnet50", "resnet101",
                                         "resnet152", "vgg11_imagenet", "vgg13_imagenet",
                                         "vgg16_imagenet", "vgg19_imagenet", "vgg11_bn_imagenet",
                                         "vgg13_bn_imagenet", "vgg16_bn_imagenet",
                                         "vgg19_bn_imagenet", "alexnet"),
                         [](const auto& model) { return std::string(model.param); });

class ImageNetGradients : public testing::TestWithParam<const char*> {};

/// The largest error that rounding explains: 1e-4 of the norm, three times that of PyTorch in
/// float32, or twice the change where a window of max pooling has two maxima within rounding of
/// each other. Correct programs may choose different ones, and any of them; errors are estimated.
double largest_error(const Json& tensor) {
  return std::max({1e-4 * tensor["norm"].get<double>(), 3 * tensor["f32_error"].get<double>(),
                   2 * tensor.value("tie_error", 0.0)});
}

TEST_P(ImageNetGradients, MatchTorchvision) {
  if (test::emulated()) GTEST_SKIP() << "takes the emulator minutes";
  const Json golden = test::read_golden(GetParam());
  GoldenImageNet net(GetParam());
  net.make_steady();
  const PassArgs pass{.ctx = net.ctx, .seed = 7, .step = 3};  // of the dropout masks
  const auto sums = net.model.forward(pass);
  net.model.backward(pass);
  EXPECT_NEAR(sums.loss / static_cast<double>(sums.count), golden["loss"].get<double>(), 1e-4);
  double largest = 0, worst = 0;
  for (const Json& tensor : golden["tensors"])
    largest = std::max(largest, tensor["norm"].get<double>());
  // the exact gradient of a bias before a batch norm is 0: only rounding remains
  const double floor = 1e-6 * largest;
  const HostFloats gradients = net.model.arena().host_gradients();
  for (const Parameter& p : net.model.arena().parameters()) {
    const Json& tensor = golden["tensors"][p.name];
    const double norm = tensor["norm"].get<double>();
    const auto ours = export_parameter(p, p.in(gradients.span()));
    const double error = test::error_norm(p.name, ours.values, tensor);
    EXPECT_LE(error, norm > floor ? largest_error(tensor) : floor) << p.name;
    if (norm > floor && !tensor.contains("tie_error")) worst = std::max(worst, error / norm);
  }
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

INSTANTIATE_TEST_SUITE_P(Some, ImageNetGradients,
                         testing::Values("resnet18", "resnet50", "vgg11_bn_imagenet"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tw
