// Exported networks compute the same logits, by an evaluator of plain loops. onnxruntime_test.cpp
// asks onnxruntime, where it is installed.
#include "engine/io/safetensors.h"
#include "tests/apps/export/network.h"
#include "tests/apps/export/onnx_evaluator.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

/// The first `sizes[0]` images of a tensor.
OnnxArray array_of(const Tensor& tensor, const std::vector<int64_t>& sizes) {
  OnnxArray array(sizes);
  std::ranges::copy(tensor.as<float>().first(array.values.size()), array.values.begin());
  return array;
}

/// One network of each family, and each kind of block and shortcut.
class OnnxValues : public testing::TestWithParam<const char*> {};

TEST_P(OnnxValues, AreTheLogitsOfTheNetwork) {
  const std::string name = GetParam();
  // half of the usual side of resnet18, whose layers do not depend on it, takes a quarter of the
  // time
  const Shape image = name == "resnet18" ? Shape{64, 64, 3} : image_for(name);
  Network network(name, image);
  const TempFolder folder;
  const auto path = folder / "example.safetensors";
  write_example(network.ctx, network.model, network.mean, network.deviation, path);
  const SafetensorsReader example(path);
  const OnnxArray input = array_of(example.tensor("input"), {1, image[2], image[0], image[1]});
  const int64_t classes = network.model.spec().classes;
  const OnnxArray expected = array_of(example.tensor("logits"), {1, classes});
  float largest = 0;
  for (const float logit : expected.values) largest = std::max(largest, std::abs(logit));
  ASSERT_GT(largest, 0);
  for (const bool fold : {false, true}) {
    const OnnxReader file(network.onnx(fold));
    const OnnxArray logits = OnnxEvaluator(file).output(input);
    ASSERT_EQ(logits.sizes, expected.sizes);
    for (size_t i = 0; i < logits.values.size(); ++i)
      EXPECT_NEAR(logits.values[i], expected.values[i], 1e-4 * largest) << "folded: " << fold;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxValues,
                         testing::Values("resnet20", "resnet18", "vgg11_cifar", "lenet", "mlp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tw::test
