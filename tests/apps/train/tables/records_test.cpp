// The rows of steps.csv and metrics.csv, the sums that they show, and steps merged over ranks.
#include "apps/train/tables/records.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/ranks/ranks.h"

namespace tw::test {
namespace {

StepRecord example() {
  return {.step = 17,
          .lr = 0.1,
          .density = 0.001,
          .loss = 96,
          .top1 = 16,
          .images = 64,
          .nnz = 150,
          .k = 100,
          .bytes = 123456789012345,
          .seconds = 2,
          .phases = {1, 2, 3, 4, 5, 6},
          .wait = 0.5};
}

TEST(StepRow, HasEveryColumnOfItsHeader) {
  EXPECT_STREQ(kStepHeader,
               "step,epoch,lr,density,train_loss,train_top1,images,seconds,nnz_over_k,bytes_sent,"
               "sec_data,sec_forward,sec_backward,sec_select,sec_exchange,sec_update,sec_wait");
  EXPECT_EQ(step_row(example(), 3),
            "17,3,0.1,0.001,1.5,0.250000,64,2.000000,1.500000,123456789012345,"
            "1.000000,2.000000,3.000000,4.000000,5.000000,6.000000,0.500000");
}

TEST(StepRow, AnEmptyStepHasNoNan) {
  const std::string row = step_row({}, 1);
  EXPECT_EQ(row.find("nan"), std::string::npos) << row;
  EXPECT_EQ(row.find("inf"), std::string::npos) << row;
}

StepRecord two_steps() {
  StepRecord totals;
  totals.add(example());
  totals.add(example());
  return totals;
}

TEST(MetricsRow, HasEveryColumnOfItsHeaderAndLeavesThoseOfAMissingValidationEmpty) {
  EXPECT_STREQ(kMetricsHeader,
               "epoch,lr,density,train_loss,train_top1,val_loss,val_top1,val_top5,images_per_s,"
               "seconds,nnz_over_k,bytes_sent,sec_data,sec_forward,sec_backward,sec_select,"
               "sec_exchange,sec_update,sec_wait");
  const ops::LossSums val{.loss = 50, .top1 = 30, .top5 = 40, .count = 40};
  const std::string rest =
      ",32.0,4.000,1.500000,246913578024690,"
      "2.000000,4.000000,6.000000,8.000000,10.000000,12.000000,1.000000";
  EXPECT_EQ(metrics_row(3, 0.1, 0.001, two_steps(), val),
            "3,0.1,0.001,1.5,0.250000,1.25,0.750000,1.000000" + rest);
  EXPECT_EQ(metrics_row(3, 0.1, 0.001, two_steps(), {}), "3,0.1,0.001,1.5,0.250000,,," + rest);
  EXPECT_EQ(metrics_row(1, 0.1, 1, {}, {}).find("nan"), std::string::npos);
}

TEST(Totals, RoundTripThroughJsonBitForBit) {
  StepRecord totals = two_steps();
  totals.loss = 0.1 + 0.2;  // no short decimal
  totals.phases.exchange = 1.0 / 3;
  const StepRecord back = StepRecord::from_json(Json::parse(totals.json().dump()));
  EXPECT_EQ(back.loss, totals.loss);
  EXPECT_EQ(back.top1, totals.top1);
  EXPECT_EQ(back.images, totals.images);
  EXPECT_EQ(back.nnz, totals.nnz);
  EXPECT_EQ(back.k, totals.k);
  EXPECT_EQ(back.bytes, totals.bytes);
  EXPECT_EQ(back.seconds, totals.seconds);
  EXPECT_EQ(back.phases.data, totals.phases.data);
  EXPECT_EQ(back.phases.exchange, totals.phases.exchange);
  EXPECT_EQ(back.phases.update, totals.phases.update);
  EXPECT_EQ(back.wait, totals.wait);
}

TEST(Totals, WaitIsZeroInOlderCheckpoints) {
  Json json = two_steps().json();
  json.erase("wait");
  EXPECT_EQ(StepRecord::from_json(json).wait, 0);
  EXPECT_EQ(StepRecord::from_json(json).seconds, two_steps().seconds);
}

TEST(Totals, ADamagedDescriptionThrows) {
  Json json = two_steps().json();
  json["phases"].erase(5);
  EXPECT_THROW(StepRecord::from_json(json), Json::exception);
  json = two_steps().json();
  json.erase("loss");
  EXPECT_THROW(StepRecord::from_json(json), Json::exception);
}

TEST(PhaseSeconds, AddAndDivideEachPhase) {
  PhaseSeconds phases{1, 2, 3, 4, 5, 6};
  phases += {1, 1, 1, 1, 1, 1};
  phases /= 2;
  EXPECT_EQ(phases.data, 1.0);
  EXPECT_EQ(phases.forward, 1.5);
  EXPECT_EQ(phases.backward, 2.0);
  EXPECT_EQ(phases.select, 2.5);
  EXPECT_EQ(phases.exchange, 3.0);
  EXPECT_EQ(phases.update, 3.5);
}

TEST(StepLog, SumsCountsAveragesSecondsAndSeparatesTheWait) {
  run_ranks(3, [](Context&, Communicator& comm) {
    std::vector<StepRecord> merged;
    StepLog log([&](const StepRecord& record) { merged.push_back(record); });
    const double rank = comm.rank();
    for (int64_t step = 1; step <= 2; ++step)
      log.add(comm, {.step = step,
                     .images = 8,
                     .bytes = 100 * rank,
                     .seconds = 2 + rank,
                     .phases = {.exchange = static_cast<double>(step) + 3 * rank}});
    EXPECT_TRUE(merged.empty());
    log.flush(comm);
    ASSERT_EQ(merged.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      const double step = static_cast<double>(i + 1);
      EXPECT_EQ(merged[i].step, step);
      EXPECT_EQ(merged[i].images, 24);
      EXPECT_EQ(merged[i].bytes, 300);
      EXPECT_DOUBLE_EQ(merged[i].seconds, 3);
      EXPECT_DOUBLE_EQ(merged[i].phases.exchange, step + 3);
      EXPECT_DOUBLE_EQ(merged[i].wait, 3);
    }
  });
}

TEST(StepLog, AMeasuredWaitIsNotPartOfTheExchange) {
  run_ranks(3, [](Context&, Communicator& comm) {
    double wait = -1;
    StepLog log([&](const StepRecord& record) { wait = record.wait; });
    const double rank = comm.rank();
    log.add(comm, {.step = 1, .phases = {.exchange = 1 + 3 * rank}, .wait = 3 * rank - 0.5});
    log.flush(comm);
    EXPECT_DOUBLE_EQ(wait, 4 - 1.5);
  });
}

TEST(StepLog, OneRankHasNoWait) {
  run_ranks(1, [](Context&, Communicator& comm) {
    double wait = -1;
    StepLog log([&](const StepRecord& record) { wait = record.wait; });
    log.add(comm, {.step = 1, .phases = {.exchange = 0.25}});
    log.flush(comm);
    EXPECT_EQ(wait, 0);
  });
}

}  // namespace
}  // namespace tw::test
