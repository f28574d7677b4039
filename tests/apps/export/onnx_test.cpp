// The structure of ONNX files, without a program that runs them.
#include "apps/export/onnx.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/apps/export/network.h"
#include "tests/apps/export/onnx_reader.h"

namespace tw::test {
namespace {

/// One network of each family, and each kind of block and shortcut.
class Onnx : public testing::TestWithParam<const char*> {};

TEST_P(Onnx, HasEveryTensorBeforeItsUse) {
  Network network(GetParam());
  for (const bool fold : {false, true}) {
    const OnnxReader file(network.onnx(fold));
    EXPECT_EQ(file.format, "7");
    EXPECT_EQ(file.opset, "13");
    EXPECT_EQ(file.metadata.at("key"), "value");
    std::set<std::string> known{file.input};
    for (const auto& [name, tensor] : file.tensors) known.insert(name);
    for (const OnnxReader::Node& node : file.nodes) {
      for (const std::string& input : node.inputs)
        EXPECT_TRUE(known.contains(input)) << node.output << " reads " << input;
      EXPECT_TRUE(known.insert(node.output).second) << node.output << " is computed twice";
    }
    EXPECT_EQ(file.input, "input");
    EXPECT_EQ(file.output, "logits");
    EXPECT_EQ(file.nodes.back().output, "logits");
  }
}

TEST_P(Onnx, HasTheWeightsUnderTheirNames) {
  Network network(GetParam());
  const ParameterArena& arena = network.model.arena();
  const OnnxReader plain(network.onnx(false)), folded(network.onnx(true));
  for (const auto* list : {&arena.parameters(), &arena.statistics()})
    for (const Parameter& p : *list) {
      ASSERT_TRUE(plain.tensors.contains(p.name)) << p.name;
      const OnnxReader::Tensor& tensor = plain.tensors.at(p.name);
      const Shape shape = exported_shape(p);
      std::vector<int64_t> sizes;
      for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
      EXPECT_EQ(tensor.sizes, sizes) << p.name;
      EXPECT_EQ(tensor.type, 1) << p.name;
      EXPECT_EQ(tensor.data.size(), p.length() * sizeof(float)) << p.name;
    }
  const size_t norms = arena.statistics().size() / 2;
  EXPECT_EQ(plain.count("BatchNormalization"), norms);
  EXPECT_EQ(folded.count("BatchNormalization"), 0u);
  EXPECT_EQ(folded.nodes.size(), plain.nodes.size() - norms);
}

INSTANTIATE_TEST_SUITE_P(Families, Onnx,
                         testing::Values("resnet20", "resnet18", "vgg11_cifar", "lenet", "mlp"));

TEST(FoldedBatchNorm, ScalesWeightsAndShiftsTheBias) {
  ParameterArena arena;
  const NetworkGraph::Conv2d conv{&arena.add({.name = "c.weight", .shape = {2, 1, 1, 2}}),
                                  &arena.add({.name = "c.bias", .shape = {2}}), 1, 1, 0};
  const NetworkGraph::BatchNorm norm{
      &arena.add({.name = "n.weight", .shape = {2}}), &arena.add({.name = "n.bias", .shape = {2}}),
      &arena.add_statistic({.name = "n.running_mean", .shape = {2}}),
      &arena.add_statistic({.name = "n.running_var", .shape = {2}}), 1.0f};
  const std::vector<float> parameters{1, 2, 3, 4, /*bias*/ 5, 6, /*gamma*/ 4, 9, /*beta*/ 7, 8};
  const std::vector<float> statistics{1, 2, /*variance*/ 3, 8};
  const NetworkValues values{parameters, statistics};
  const ConvWeights result = folded(conv_weights(conv, values), norm, values);
  EXPECT_EQ(result.weight.values, (std::vector<float>{2, 4, 9, 12}));  // scales 4 / 2 and 9 / 3
  EXPECT_EQ(result.bias, (std::vector<float>{(5 - 1) * 2 + 7, (6 - 2) * 3 + 8}));
}

TEST(FoldedBatchNorm, GivesAConvolutionWithoutBiasOne) {
  ParameterArena arena;
  const NetworkGraph::Conv2d conv{&arena.add({.name = "c.weight", .shape = {1, 1, 1, 1}}), nullptr,
                                  1, 1, 0};
  const NetworkGraph::BatchNorm norm{
      &arena.add({.name = "n.weight", .shape = {1}}), &arena.add({.name = "n.bias", .shape = {1}}),
      &arena.add_statistic({.name = "n.running_mean", .shape = {1}}),
      &arena.add_statistic({.name = "n.running_var", .shape = {1}}), 0.0f};
  const std::vector<float> parameters{3, /*gamma*/ 4, /*beta*/ 5}, statistics{6, /*variance*/ 4};
  const NetworkValues values{parameters, statistics};
  const ConvWeights result = folded(conv_weights(conv, values), norm, values);
  EXPECT_EQ(result.weight.values, std::vector<float>{6});
  EXPECT_EQ(result.bias, std::vector<float>{5 - 6 * 2});
}

}  // namespace
}  // namespace tw::test
