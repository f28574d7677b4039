// Learning rate per step, density per epoch.
#include "apps/train/schedule.h"

#include <gtest/gtest.h>

namespace tw::test {
namespace {

constexpr int64_t kBatches = 7;  // no power of two: sums of fractions would round

TrainConfig config_of(LrSchedule schedule, double warmup) {
  TrainConfig config;
  config.lr = 0.1;
  config.lr_schedule = schedule;
  config.epochs = 10;
  config.warmup_epochs = warmup;
  config.lr_milestones = {4, 8};
  return config;
}

TEST(LearningRate, WarmUpRisesByTheSameAmountEachStepToTheFullRate) {
  for (const LrSchedule schedule : {LrSchedule::cosine, LrSchedule::step, LrSchedule::constant}) {
    const TrainConfig config = config_of(schedule, 3);
    for (int64_t step = 0; step < 3 * kBatches; ++step)
      EXPECT_DOUBLE_EQ(learning_rate(config, step / kBatches, step % kBatches, kBatches),
                       0.1 * static_cast<double>(step + 1) / (3 * kBatches));
    EXPECT_EQ(learning_rate(config, 2, kBatches - 1, kBatches), 0.1) << word(schedule);
    EXPECT_EQ(learning_rate(config, 3, 0, kBatches), 0.1) << word(schedule);
  }
}

TEST(LearningRate, WarmUpStartsAtTheGivenFractionOfTheRate) {
  TrainConfig config = config_of(LrSchedule::step, 3);
  config.warmup_from = 0.25;
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 0, kBatches), 0.025);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 0, kBatches), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(config, 2, kBatches - 1, kBatches), 0.1 - 0.075 / 21);
  EXPECT_EQ(learning_rate(config, 3, 0, kBatches), 0.1);
}

TEST(LearningRate, WithoutWarmUpStartsAtTheFullRate) {
  for (const LrSchedule schedule : {LrSchedule::cosine, LrSchedule::step, LrSchedule::constant})
    EXPECT_EQ(learning_rate(config_of(schedule, 0), 0, 0, kBatches), 0.1) << word(schedule);
}

TEST(LearningRate, NeverExceedsTheRateAndCosineFallsEachStep) {
  for (const int64_t warmup : {0, 2}) {
    const TrainConfig config = config_of(LrSchedule::cosine, static_cast<double>(warmup));
    double before = 0.1 + 1e-9;
    for (int64_t step = warmup * kBatches; step < 10 * kBatches; ++step) {
      const double now = learning_rate(config, step / kBatches, step % kBatches, kBatches);
      EXPECT_LE(now, 0.1);
      EXPECT_LT(now, before) << step;
      EXPECT_GT(now, 0);
      before = now;
    }
  }
}

TEST(LearningRate, CosineIsHalfInTheMiddleAndNearZeroAtTheEnd) {
  const TrainConfig config = config_of(LrSchedule::cosine, 2);
  EXPECT_NEAR(learning_rate(config, 6, 0, kBatches), 0.05, 1e-12);
  // the last step is one step before zero: 1 - cos x is x^2 / 2 there
  EXPECT_NEAR(learning_rate(config, 9, kBatches - 1, kBatches), 0.1 * 0.00078666, 1e-6);
  EXPECT_NEAR(learning_rate(config, 10, 0, kBatches), 0, 1e-12);
  EXPECT_NEAR(learning_rate(config, 12, 3, kBatches), 0, 1e-12) << "a run made longer stays there";
}

TEST(LearningRate, StepFallsAtTheMilestonesInAnyOrder) {
  TrainConfig config = config_of(LrSchedule::step, 0);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(learning_rate(config, 3, kBatches - 1, kBatches), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(config, 4, 0, kBatches), 0.01);
    EXPECT_DOUBLE_EQ(learning_rate(config, 7, kBatches - 1, kBatches), 0.01);
    EXPECT_DOUBLE_EQ(learning_rate(config, 8, 0, kBatches), 0.001);
    config.lr_milestones = {8, 4};
  }
  config.lr_milestones = {};
  EXPECT_EQ(learning_rate(config, 9, 0, kBatches), 0.1);
}

TEST(LearningRate, ConstantScheduleKeepsTheRate) {
  EXPECT_EQ(learning_rate(config_of(LrSchedule::constant, 0), 9, 3, kBatches), 0.1);
}

TEST(LearningRate, WarmUpAsLongAsTheRunIsFinite) {
  const TrainConfig config = config_of(LrSchedule::cosine, 10);
  EXPECT_EQ(learning_rate(config, 9, kBatches - 1, kBatches), 0.1);
  EXPECT_EQ(learning_rate(config, 10, 0, kBatches), 0.1);
}

TEST(LearningRate, WarmUpMayEndWithinAnEpoch) {
  TrainConfig config = config_of(LrSchedule::constant, 0);
  config.warmup_epochs = 0.6;  // 4 of 7 steps
  for (int64_t batch = 0; batch < 4; ++batch)
    EXPECT_DOUBLE_EQ(learning_rate(config, 0, batch, kBatches),
                     0.1 * static_cast<double>(batch + 1) / 4);
  EXPECT_EQ(learning_rate(config, 0, 4, kBatches), 0.1);
}

TEST(LearningRate, LinearScalingCountsTheMicroBatchesOfAllRanks) {
  TrainConfig config;
  config.accumulate = 3;
  config.lr_scaling = LrScaling::linear;
  EXPECT_EQ(learning_rate_factor(config, 4), 12);
  config.lr_scaling = LrScaling::none;
  EXPECT_EQ(learning_rate_factor(config, 4), 1);
}

TrainConfig resolved(double density, int64_t epochs) {
  TrainConfig config;
  config.density = density;
  config.epochs = epochs;
  resolve_warmup(config);
  return config;
}

TEST(Warmup, OfTheDensityHasOnlyValuesAboveIt) {
  using List = std::vector<double>;
  EXPECT_EQ(resolved(0.001, 10).density_warmup, (List{0.015625, 0.004}));
  EXPECT_EQ(resolved(0.004, 10).density_warmup, (List{0.015625}));
  EXPECT_EQ(resolved(0.01, 10).density_warmup, (List{0.015625}));
  EXPECT_EQ(resolved(0.1, 3).density_warmup, List{});
  TrainConfig given;
  given.density = 0.1;
  given.density_warmup = List{0.004};
  resolve_warmup(given);
  EXPECT_EQ(given.density_warmup, List{0.004});
}

TEST(Warmup, OfTheLearningRateIsAtMostAFifthOfTheRun) {
  for (const double density : {0.001, 0.1, 1.0}) {
    EXPECT_EQ(resolved(density, 100).warmup_epochs, 2) << density;
    EXPECT_EQ(resolved(density, 10).warmup_epochs, 2) << density;
    EXPECT_DOUBLE_EQ(*resolved(density, 3).warmup_epochs, 0.6) << density;
    EXPECT_EQ(resolved(density, 0).warmup_epochs, 0) << density;
  }
  TrainConfig given;
  given.warmup_epochs = 0;
  resolve_warmup(given);
  EXPECT_EQ(given.warmup_epochs, 0);
}

TEST(Density, IsTheListThenTheFinalValue) {
  TrainConfig config;
  config.density = 0.001;
  config.density_warmup = std::vector{0.25, 0.0625};
  EXPECT_EQ(density_of(config, 0), 0.25);
  EXPECT_EQ(density_of(config, 1), 0.0625);
  EXPECT_EQ(density_of(config, 2), 0.001);
  EXPECT_EQ(density_of(config, 1000), 0.001);
  EXPECT_TRUE(in_density_warmup(config, 1));
  EXPECT_FALSE(in_density_warmup(config, 2));
  config.density_warmup = std::vector<double>{};
  EXPECT_EQ(density_of(config, 0), 0.001);
  EXPECT_FALSE(in_density_warmup(config, 0));
}

}  // namespace
}  // namespace tw::test
