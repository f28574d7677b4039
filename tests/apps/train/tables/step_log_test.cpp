// Step records merged over ranks.
#include "apps/train/tables/step_log.h"

#include "tests/support/ranks/ranks.h"

namespace tw::test {
namespace {

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
