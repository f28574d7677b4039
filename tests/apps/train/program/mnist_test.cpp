// Training on gray images in the layout of MNIST.
#include <fstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

/// A number in four bytes, the highest first.
std::string big_endian(int value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

/// Images of ten classes in turn: class c has rows 2c + 4 and 2c + 5 in white.
void write_half(const std::filesystem::path& dir, const std::string& half, int count) {
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (int i = 0; i < count; ++i) {
    const int label = i % 10;
    labels += static_cast<char>(label);
    for (int row = 0; row < 28; ++row)
      images += std::string(28, row / 2 == label + 2 ? '\xff' : static_cast<char>(i));
  }
  std::filesystem::create_directories(dir);
  std::ofstream(dir / (half + "-images-idx3-ubyte"), std::ios::binary) << images;
  std::ofstream(dir / (half + "-labels-idx1-ubyte"), std::ios::binary) << labels;
}

TEST(MnistTraining, LenetAndTheMlpLearnGrayImages) {
  const TempFolder folder;
  const auto data = folder / "MNIST/raw";
  write_half(data, "train", 120);
  write_half(data, "t10k", 30);
  const auto train = [&](const std::string& arguments) {
    return fmt::format(
        "{0} --data-dir {1} --output-dir {1} --precision f32 --workers 2 --batch-size 5 --epochs 6 "
        "--lr 0.02 {2}",
        TW_TRAIN, folder.path().string(), arguments);
  };
  // 28 x 28 x 1; both convolutions 5 x 5, both poolings 2 x 2: 4 x 4 x 16 values enter fc1
  const int lenet = (25 * 6 + 6) + (25 * 6 * 16 + 16) + (256 * 120 + 120) + (120 * 84 + 84) + 850;
  const int mlp = (784 * 256 + 256) + (256 * 128 + 128) + (128 * 10 + 10);
  for (const auto& [model, parameters] : {std::pair{"lenet", lenet}, {"mlp", mlp}}) {
    const Ended run = run_well(train(fmt::format("--model {} --name {}", model, model)));
    EXPECT_TRUE(run.says(fmt::format("{}: {} parameters, 10 classes", model, parameters)) &&
                run.says("data: mnist (120 training images), validation on 30 images: test file"))
        << run.output;
    const auto summary = nlohmann::json::parse(text_of(folder / model / "summary.json"));
    EXPECT_EQ(summary["val_top1"], 1) << run.output;
  }
  expect_end(train("--model lenet --bad-images skip"), 2, "mnist has no image files");
  std::filesystem::resize_file(data / "train-labels-idx1-ubyte", 127);
  expect_end(train("--model lenet"), 2, "train-labels-idx1-ubyte has 119 bytes after its header");
}

}  // namespace
}  // namespace tw::test
