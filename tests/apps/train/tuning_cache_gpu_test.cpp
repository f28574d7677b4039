// All ranks use the same tuning cache: that of rank 0, or that of the resumed run.
#include <gtest/gtest.h>

#include "apps/train/tuning_cache.h"
#include "comm/transports.h"
#include "tests/support/data.h"
#include "tests/support/device.h"

namespace tw {
namespace {

using Algorithms = std::map<std::string, std::string>;

TEST(TuningCache, Rank0MeasuresAloneAndTheOthersUseItsCache) {
  std::atomic<int> planned = 0;
  run_on_threads(3, [&](Communicator& comm) {
    Context ctx(test::device());
    plan_consistently(ctx, comm, [&] {
      const bool first = planned++ == 0;
      EXPECT_EQ(first, comm.rank() == 0);
      EXPECT_EQ(first, ctx.tuning_cache().empty());
      ctx.tuning_cache().try_emplace("shape", fmt::format("engine {}", comm.rank()));
    });
    EXPECT_EQ(ctx.tuning_cache(), (Algorithms{{"shape", "engine 0"}}));
  });
  EXPECT_EQ(planned, 3);
}

TEST(TuningCache, CpuRanksPlanWithoutMessages) {
  run_on_threads(2, [&](Communicator& comm) {
    Context ctx;
    int planned = 0;
    plan_consistently(ctx, comm, [&] { ++planned; });
    EXPECT_EQ(planned, 1);
    EXPECT_EQ(comm.bytes_sent(), 0u);
  });
}

TEST(TuningCache, AUserErrorOnRank0IsThrownOnEveryRank) {
  run_on_threads(2, [&](Communicator& comm) {
    Context ctx(test::device());
    EXPECT_THROW(plan_consistently(ctx, comm, [] { fail("[conv2d] no such shape"); }), UserError);
  });
}

TEST(TuningCache, AResumedRunKeepsItsCache) {
  const test::TempFolder folder;
  Context first(test::device());
  first.tuning_cache()["shape"] = "engine 7";
  save_tuning_cache(first, folder.path());
  run_on_threads(2, [&](Communicator& comm) {
    Context ctx(test::device());
    ctx.tuning_cache()["shape"] = "engine 1";
    EXPECT_TRUE(load_tuning_cache(ctx, comm, folder.path()));
    EXPECT_EQ(ctx.tuning_cache(), (Algorithms{{"shape", "engine 7"}}));
    EXPECT_FALSE(load_tuning_cache(ctx, comm, folder.path())) << "they are the same";
    EXPECT_FALSE(load_tuning_cache(ctx, comm, folder.path() / "none"));
  });
}

}  // namespace
}  // namespace tw
