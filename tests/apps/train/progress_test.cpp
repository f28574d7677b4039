#include "apps/train/progress.h"

#include <gtest/gtest.h>

namespace tw::test {
namespace {

StepRecord step_of(double loss) {
  return {.step = 1,
          .loss = loss * 128,
          .top1 = 32,
          .images = 128,
          .bytes = 1 << 20,
          .seconds = 0.5,
          .phases = {.exchange = 0.125}};
}

/// After a few equal steps of half a second.
Progress trained(const TrainConfig& config, int ranks = 4) {
  Progress progress(config, ranks);
  for (int i = 0; i < 3; ++i) {
    progress.add(step_of(1.25));
    progress.add_time(1, 0.5);
  }
  return progress;
}

constexpr Place kPlace{.epoch = 1, .batch = 20, .batches = 100, .step = 120};

TEST(Progress, ShowsEveryMeasureOnAWideTerminal) {
  EXPECT_EQ(trained({}).line(kPlace, 199),
            "epoch 2/10 |######........................| 20/100  loss 1.2500  top-1 0.250  "
            "0.5 s/step  1024 images/s  25 % exchange  8.0 MiB/s  ETA 7:20");
}

TEST(Progress, FitsEveryWidth) {
  const Progress progress = trained({});
  for (int columns = 0; columns < 200; ++columns)
    EXPECT_LE(progress.line(kPlace, columns).size(), static_cast<size_t>(columns));
  EXPECT_EQ(progress.line(kPlace, 39), "epoch 2/10 20/100  ETA 7:20");
  EXPECT_EQ(progress.line(kPlace, 59), "epoch 2/10 20/100  loss 1.2500  0.5 s/step  ETA 7:20");
  EXPECT_EQ(progress.line(kPlace, 79),
            "epoch 2/10 |##.........| 20/100  loss 1.2500  top-1 0.250  0.5 s/step  ETA 7:20");
}

/// The end of the line of a run.
std::string left(int64_t epochs, int64_t max_steps, std::optional<int64_t> eval_every,
                 double validation) {
  TrainConfig config;
  config.epochs = epochs;
  config.max_steps = max_steps;
  config.eval_every = eval_every;
  Progress progress = trained(config);
  progress.add_validation(validation);
  const std::string line = progress.line(kPlace, 199);
  return line.substr(line.find("ETA"));
}

TEST(Progress, TheTimeLeftIsThatOfTheRun) {
  EXPECT_EQ(left(10, 0, 1, 0), "ETA 7:20");
  EXPECT_EQ(left(10, 130, 1, 0), "ETA 0:05");
  EXPECT_EQ(left(10, 100000, 1, 0), "ETA 7:20");
  EXPECT_EQ(left(2, 0, 1, 0), "ETA 0:40");
}

TEST(Progress, CountsTheStepsUntilMaxSteps) {
  TrainConfig config;
  for (const auto& [max_steps, count] : {std::pair{0, " 20/100 "}, {130, " 20/30 "}}) {
    config.max_steps = max_steps;
    const std::string line = trained(config).line(kPlace, 199);
    EXPECT_NE(line.find(count), std::string::npos) << line;
  }
}

TEST(Progress, TheTimeLeftHasTheValidationsYetToCome) {
  EXPECT_EQ(left(10, 0, 1, 60), "ETA 16:20");
  EXPECT_EQ(left(10, 0, 0, 60), "ETA 8:20");
  EXPECT_EQ(left(10, 0, std::nullopt, 60), "ETA 7:20");
  EXPECT_EQ(left(10, 0, 4, 60), "ETA 10:20");  // after epochs 4, 8 and 10
  EXPECT_EQ(left(10, 130, 1, 60), "ETA 1:05");
}

TEST(Progress, AValidationIsTakenAsForwardPassesUntilOneWasTimed) {
  TrainConfig config;
  config.accumulate = 2;
  Progress progress = trained(config);
  Place at = kPlace;
  at.to_validate = 72;  // of two thirds of a second: 9 of them take 54 s
  const auto ends = [&](const char* text) { return progress.line(at, 199).ends_with(text); };
  EXPECT_TRUE(ends("ETA 8:14")) << progress.line(at, 199);
  progress.add_validation(60);
  EXPECT_TRUE(ends("ETA 16:20")) << progress.line(at, 199);
}

TEST(Progress, SaysThatItValidates) {
  Progress progress = trained({});
  progress.add_validation(60);
  Place at{.epoch = 9, .batch = 100, .batches = 100, .step = 1000, .to_validate = 40};
  at.validated = 10;
  const std::string line = progress.line(at, 79);
  EXPECT_TRUE(line.starts_with("epoch 10/10 validating 10/40 ")) << line;
  EXPECT_TRUE(line.ends_with("ETA 0:45")) << line;
  at.batches = 0;  // --eval-only
  EXPECT_EQ(Progress({}, 1).line(at, 79), "|#######.......................| validating 10/40");
}

TEST(Progress, OneRankExchangesNothing) {
  const std::string line = trained({}, 1).line(kPlace, 199);
  EXPECT_EQ(line.find("exchange"), std::string::npos) << line;
  EXPECT_NE(line.find("256 images/s"), std::string::npos) << line;
}

TEST(Progress, BytesOfAllRanksReplaceThoseOfThisRank) {
  Progress progress = trained({});
  StepRecord merged = step_of(1);
  merged.bytes = 1 << 19;
  progress.add_merged(merged);
  EXPECT_NE(progress.line(kPlace, 199).find("1.0 MiB/s"), std::string::npos);
}

TEST(Progress, FollowsTheSpeedOfTheLastSteps) {
  Progress progress = trained({});
  for (int i = 0; i < 100; ++i) progress.add_time(1, 0.25);
  EXPECT_NE(progress.line(kPlace, 199).find("0.25 s/step"), std::string::npos);
  progress.add_time(640, 64);  // many at once, as captured steps are
  EXPECT_NE(progress.line(kPlace, 199).find("0.1 s/step"), std::string::npos);
}

}  // namespace
}  // namespace tw::test
