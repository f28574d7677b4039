// Convolutions leave out engines of cuDNN that fail to run or are inaccurate and, if there are
// others, those that no graph can record. Ranks start while another rank records a graph.
#include <gtest/gtest.h>

#include <thread>

#include "engine/device/graph.h"
#include "engine/ops/conv2d.h"
#include "tests/emulator/libraries/cudnn.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using emulator::Engine;

class Engines : public testing::TestWithParam<bool> {
 protected:
  ~Engines() override { emulator::engines() = {Engine::runs}; }

  std::unique_ptr<ops::Conv2d> create(std::vector<Engine> engines, MathMode math = {}) {
    emulator::engines() = std::move(engines);
    math.deterministic = GetParam();
    ctx.set_math(math);
    return ops::Conv2d::create(ctx, {.batch = 2,
                                     .height = 4,
                                     .width = 4,
                                     .in_channels = 4,
                                     .out_channels = 8,
                                     .kernel = 3,
                                     .stride = 1,
                                     .padding = 1,
                                     .dtype = DType::f32});
  }

  Context ctx{Device::cuda};
};

TEST_P(Engines, ThatCannotRunOrBeCapturedAreLeftOut) {
  create({Engine::refuses, Engine::breaks_capture, Engine::runs});
  EXPECT_EQ(ctx.tuning_cache().size(), 3u) << "forward, backward data, backward filter";
  for (const auto& [convolution, engine] : ctx.tuning_cache()) EXPECT_EQ(engine, "engine 2");
}

/// NVIDIA's library has engines for f32 that compute in TF32 without a numerical note.
TEST_P(Engines, ThatRoundTheirOperandsAreLeftOut) {
  for (const bool tf32 : {false, true}) {
    ctx.tuning_cache().clear();
    create({Engine::rounds, Engine::refuses, Engine::runs}, {.tf32 = tf32});
    EXPECT_EQ(ctx.tuning_cache().size(), 3u);
    for (const auto& [convolution, engine] : ctx.tuning_cache())
      if (!tf32) EXPECT_EQ(engine, "engine 2") << convolution;
  }
  for (const auto& [convolution, engine] : ctx.tuning_cache())
    if (GetParam()) EXPECT_EQ(engine, "engine 0") << convolution;
}

TEST_P(Engines, OfTheTuningCacheAreUsed) {
  create({Engine::breaks_capture, Engine::runs, Engine::runs});
  auto& cache = ctx.tuning_cache();
  for (auto& [convolution, engine] : cache) engine = "engine 2";
  const auto before = cache;
  create({Engine::refuses, Engine::refuses, Engine::runs});
  EXPECT_EQ(cache, before);
}

TEST_P(Engines, ReplaceOnesOfTheTuningCacheThatAreGone) {
  create({Engine::runs});
  auto& cache = ctx.tuning_cache();
  for (auto& [convolution, engine] : cache) engine = "engine 7";
  create({Engine::refuses, Engine::breaks_capture, Engine::runs});
  EXPECT_EQ(cache.size(), 3u);
  for (const auto& [convolution, engine] : cache) EXPECT_EQ(engine, "engine 2") << convolution;
}

TEST_P(Engines, ThatCannotBeCapturedAreTheLastResort) {
  create({Engine::refuses, Engine::breaks_capture, Engine::breaks_capture});
  EXPECT_EQ(ctx.tuning_cache().size(), 3u);
  for (const auto& [convolution, engine] : ctx.tuning_cache()) EXPECT_EQ(engine, "engine 1");
}

TEST_P(Engines, NoneIsReported) {
  const auto error = test::error_text<Fault>([&] { create({Engine::refuses, Engine::refuses}); });
  EXPECT_NE(error.find("has no engine for: forward"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Modes, Engines, testing::Bool(), [](const auto& deterministic) {
  return deterministic.param ? "deterministic" : "raced";
});

TEST(EnginesOfRanks, ARankStartsWhileAnotherRecords) {
  Context first(Device::cuda);
  EXPECT_NO_THROW(Graph::record(first, [] { std::thread([] { Context(Device::cuda); }).join(); }));
}

}  // namespace
}  // namespace tw
