// Dropout masks in training: each seed, rank, step and micro-batch has its own.
#include "apps/train/run_folder.h"
#include "apps/train/sweep.h"
#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "engine/io/safetensors.h"
#include "layers/activation.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/arguments.h"
#include "tests/support/data.h"

namespace tw::test {
namespace {

constexpr size_t kPixels = 32 * 32 * 3;

LayerPtr dropped_pixels(ParameterArena& arena, const ModelSpec& spec) {
  auto net = std::make_unique<layers::Sequential>();
  net->add<layers::Dropout>({.rate = 0.5f});
  net->add<layers::Linear>(arena,
                           {.name = "fc", .in = spec.image, .out = spec.classes, .logits = true});
  return net;
}

class White : public Dataset {
 public:
  size_t size() const override { return 4; }
  int32_t get(size_t, std::span<uint8_t> pixels) const override {
    std::ranges::fill(pixels, uint8_t{255});
    return 0;
  }
};

struct Masks {
  int ranks = 1;
  const char *steps = "1", *accumulate = "1", *seed = "1";
};

/// Which pixels had a part in a gradient: the momentum of their weights is not 0.
std::vector<bool> pixels_used(const Masks& masks) {
  static const bool registered = models().add({"dropped_pixels", "for this test", dropped_pixels});
  EXPECT_TRUE(registered);
  const TempFolder folder;
  Arguments arguments({"--model",        "dropped_pixels",
                       "--batch-size",   "1",
                       "--weight-decay", "0",
                       "--lr",           "1e-6",
                       "--precision",    "f32",
                       "--max-steps",    masks.steps,
                       "--accumulate",   masks.accumulate,
                       "--seed",         masks.seed,
                       "--name",         "run",
                       "--output-dir",   folder.path().string()});
  const TrainConfig config =
      parse_train_configs(parse_flags(arguments.count(), arguments.values()), {})[0];
  const auto white = std::make_shared<White>();
  const DataSplit data{
      .train = white, .val = white, .val_name = "", .mean = {0, 0, 0}, .deviation = {1, 1, 1}};
  run_on_threads(masks.ranks, [&](Communicator& comm) {
    const std::atomic<bool> stop = false;
    Console console(false);
    train(comm, config, data, stop, console);
  });
  const SafetensorsReader file(*latest_checkpoint(folder / "run") / "momentum.safetensors");
  const std::span<const float> momentum = file.tensor("momentum").as<float>();
  std::vector<bool> used;
  for (const float value : momentum.first(kPixels)) used.push_back(value != 0);
  return used;
}

/// The share of pixels that are used in one of the two.
double share(const std::vector<bool>& a, const std::vector<bool>& b) {
  int64_t used = 0;
  for (size_t i = 0; i < kPixels; ++i) used += a[i] || b[i];
  return static_cast<double>(used) / static_cast<double>(kPixels);
}
double share(const Masks& masks) {
  const std::vector<bool> used = pixels_used(masks);
  return share(used, used);
}

// a mask drops half of the pixels; two independent ones drop a quarter in both
TEST(DropoutMasks, DifferBetweenSeedsRanksStepsAndMicroBatches) {
  constexpr double kNoise = 0.03;  // four standard deviations
  const std::vector<bool> one = pixels_used({});
  EXPECT_NEAR(share(one, one), 0.5, kNoise);
  EXPECT_NEAR(share({.ranks = 2}), 0.75, kNoise);
  EXPECT_NEAR(share({.steps = "2"}), 0.75, kNoise);
  EXPECT_NEAR(share({.accumulate = "2"}), 0.75, kNoise);
  EXPECT_NEAR(share(one, pixels_used({.seed = "2"})), 0.75, kNoise);
}

}  // namespace
}  // namespace tw::test
