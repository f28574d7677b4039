// A rank that sends its neighbour other sums than it keeps: no checkpoint holds weights that differ
// between ranks.
#include <atomic>

#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/damaged.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

TrainConfig config_in(const TempFolder& folder) {
  TrainConfig config;
  config.settings = default_settings();
  config.model = "lenet";
  config.dataset = "shapes";
  config.batch_size = 2;
  config.warmup_epochs = 0;
  config.density_warmup.emplace();
  config.max_steps = 6;
  config.checkpoint_steps = 3;
  config.eval_every = std::nullopt;
  config.threads_per_rank = 1;
  config.output_dir = folder.path().string();
  config.name = "run";
  return config;
}

/// Trains on two ranks, of which rank 1 damages every message.
void train_with(const Damage& damage, const TempFolder& folder) {
  const TrainConfig config = config_in(folder);
  const DataSplit data =
      datasets()
          .find(config.dataset)
          .value({.dir = std::filesystem::path(TW_TEST_CACHE) / "shapes-v1", .val_size = 64});
  const std::atomic<bool> stop = false;
  run_on_threads(2, [&](Communicator& inner) {
    DamagedCommunicator comm(inner);
    if (comm.rank() == 1) comm.set_damage(damage);
    Console console(false);
    train(comm, config, data, stop, console);
  });
}

TEST(LyingRank, NoCheckpointHoldsWeightsThatDiffer) {
  const TempFolder folder;
  const auto large = [](std::vector<std::byte>& message) {
    if (message.size() > 10'000) tw::put(message, 0, 0.125f);
  };
  const std::string text = error_text<Fault>([&] { train_with(large, folder); });
  EXPECT_TRUE(text.starts_with("[train] the weights of rank ")) << text;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "run/checkpoints"));
}

TEST(LyingRank, WithoutDamageTheRunEnds) {
  const TempFolder folder;
  train_with([](std::vector<std::byte>&) {}, folder);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoints/step-00000003"));
}

}  // namespace
}  // namespace tw::test
