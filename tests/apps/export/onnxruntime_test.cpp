// onnxruntime computes the same logits from exported networks. Needs a Python with onnx,
// onnxruntime and safetensors, named by THINWIRE_PYTHON.
#include "engine/io/file.h"
#include "tests/apps/export/network.h"
#include "tests/support/program.h"
#include "tests/support/run_on_images.h"

namespace tw::test {
namespace {

std::string python() {
  const char* const named = std::getenv("THINWIRE_PYTHON");
  return named ? named : "python3";
}

class OnnxRuntime : public testing::TestWithParam<std::string> {};

TEST_P(OnnxRuntime, ComputesTheSameLogits) {
  if (run_command(python() + " -c 'import onnx, onnxruntime, safetensors'").code != 0)
    GTEST_SKIP() << python() << " has no onnx, onnxruntime and safetensors (THINWIRE_PYTHON names "
                 << "another)";
  const TempFolder folder;
  {
    Network network(GetParam());
    write_atomically(folder / "plain.onnx", network.onnx(false));
    write_atomically(folder / "folded.onnx", network.onnx(true));
    write_example(network.ctx, network.model, network.mean, network.deviation,
                  folder / "example.safetensors");
  }
  const Ended ended = run_well(fmt::format("{} {}/tests/apps/export/run_onnx.py {}", python(),
                                           std::getenv("TW_SOURCE"), folder.path().string()));
  EXPECT_TRUE(ended.says("plain.onnx") && ended.says("folded.onnx")) << ended.output;
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxRuntime,
                         testing::Values("resnet20", "resnet18", "resnet50", "vgg11_cifar",
                                         "vgg11_bn_imagenet", "alexnet", "lenet", "mlp"),
                         [](const auto& one) { return one.param; });

using DocumentedLines = RunOnImages;

TEST_F(DocumentedLines, NameAnImageAsPredictDoes) {
  if (run_command(python() + " -c 'import onnxruntime, PIL'").code != 0)
    GTEST_SKIP() << python() << " has no onnxruntime and PIL (THINWIRE_PYTHON names another)";
  // 37 x 37 pixels, of which a network for 32 x 32 takes the centre without resizing
  const std::string crop =
      "from PIL import Image; Image.open('data/val/n00000001/0002.JPEG').crop((0, 0, 37, "
      "37)).save('photo.jpg', 'PNG')";
  ASSERT_EQ(in_folder(fmt::format("{} -c \"{}\"", python(), crop)).code, 0);
  ASSERT_EQ(in_folder(fmt::format("{}/export runs/run -o model.onnx", TW_BIN)).code, 0);
  ASSERT_EQ(run("predict", "runs/run photo.jpg --save predicted.csv").code, 0);
  const Ended ended = in_folder(
      fmt::format("sed -n '/^import json, numpy, onnx/,/^```/p' {}/docs/export.md | grep -v '^```' "
                  "| {}",
                  std::getenv("TW_SOURCE"), python()));
  ASSERT_EQ(ended.lines(), 3u) << ended.output;
  const auto predicted = rows_of("predicted.csv");
  std::istringstream named(ended.output);
  std::string name;
  for (double probability = 0; named >> name >> probability;) {
    const auto column = std::ranges::find(predicted[0], name) - predicted[0].begin();
    EXPECT_NEAR(probability, std::stod(predicted[1].at(static_cast<size_t>(column))), 1e-4) << name;
  }
}

}  // namespace
}  // namespace tw::test
