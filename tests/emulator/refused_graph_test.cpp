// A run whose CUDA graphs are refused goes on op by op, with the same weights and one notice.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "engine/io/file.h"
#include "sparsify/sparsifier.h"
#include "tests/emulator/graph.h"
#include "tests/emulator/stream.h"
#include "tests/support/data.h"
#include "tests/support/temp_folder.h"

namespace tw {
namespace {

/// Images of the classes 0 to 7.
DataSplit few_images() {
  const auto images = std::make_shared<test::CountingDataset>(8);
  images->classes = 10;
  return {.train = images,
          .val = images,
          .val_name = "the training images",
          .mean = {0.5f, 0.5f, 0.5f},
          .deviation = {0.25f, 0.25f, 0.25f}};
}

enum class At { instantiation, call };

class RefusedGraph : public testing::TestWithParam<std::tuple<const char*, At>> {
 protected:
  ~RefusedGraph() override {
    emulator::graph_hooks().refuses = false;
    emulator::before_queue() = {};
  }

  static void refuse(At at) {
    if (at == At::instantiation) emulator::graph_hooks().refuses = true;
    // as a call that waits
    if (at == At::call) emulator::before_queue() = [] { emulator::refused_in_capture(); };
  }

  struct Trained {
    std::string weights_hash;
    int notices = 0;
  };
  Trained train(const std::string& name) {
    TrainConfig config;
    config.settings = default_settings();
    config.model = "lenet";
    config.dataset = "shapes";
    config.sparsifier = std::get<0>(GetParam());
    config.device = Device::cuda;
    config.precision = Precision::f32;
    config.deterministic = true;
    config.batch_size = 2;
    config.warmup_epochs = 0;
    config.density_warmup.emplace();
    config.epochs = 2;
    config.eval_every = std::nullopt;
    config.threads_per_rank = 1;
    config.output_dir = folder_.path().string();
    config.name = name;
    const std::atomic<bool> stop = false;
    Console console(Console::Output::logs);
    run_on_threads(
        1, [&](Communicator& comm) { tw::train(comm, config, few_images(), stop, console); });
    const auto summary = nlohmann::json::parse(read_text_if_any(folder_ / name / "summary.json"));
    Trained trained{.weights_hash = summary.at("weights_hash")};
    const std::string log = read_text_if_any(folder_ / name / "run.log");
    for (size_t at = 0; (at = log.find("note: no CUDA graph", at)) != std::string::npos; ++at)
      ++trained.notices;
    return trained;
  }

 private:
  test::TempFolder folder_;
};

TEST_P(RefusedGraph, TrainsOpByOpWithTheSameWeights) {
  const Trained recorded = train("recorded");
  EXPECT_EQ(recorded.notices, 0);
  refuse(std::get<1>(GetParam()));
  const Trained refused = train("refused");
  EXPECT_EQ(refused.notices, 1);
  EXPECT_EQ(refused.weights_hash, recorded.weights_hash);
}

INSTANTIATE_TEST_SUITE_P(Steps, RefusedGraph,
                         testing::Combine(testing::Values("dense", "topk"),
                                          testing::Values(At::instantiation, At::call)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) == At::call ? "_call" : "_graph");
                         });

}  // namespace
}  // namespace tw
