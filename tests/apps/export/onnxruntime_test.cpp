// onnxruntime computes the same logits from exported networks. Needs a Python with onnx,
// onnxruntime and safetensors, named by THINWIRE_PYTHON.
#include "engine/io/file.h"
#include "tests/apps/export/network.h"
#include "tests/support/program.h"

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

}  // namespace
}  // namespace tw::test
