// --keep-checkpoints and --keep-best: the checkpoints that stay.
#include <set>

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

class KeepCheckpoints : public testing::Test {
 protected:
  Ended train(const std::string& name, const std::string& arguments) const {
    return run_command(fmt::format(
        "{} --output-dir {} {} --model lenet --lr {} --workers 2 --batch-size 50 --epochs 5 "
        "--threads-per-rank 1 --name {} {}",
        TW_TRAIN, folder_.path().string(), short_epochs(folder_.path()), kRate, name, arguments));
  }
  std::set<std::string> names(const std::string& run) const {
    std::set<std::string> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / run / "checkpoints"))
      all.insert(entry.path().filename().string());
    return all;
  }
  /// The first epoch with the highest val_top1 of metrics.csv.
  int64_t best_epoch(const std::string& run) const {
    const auto top1 = table_column(folder_ / run / "metrics.csv", "val_top1");
    EXPECT_FALSE(top1.empty());
    return std::ranges::max_element(top1) - top1.begin() + 1;
  }
  static constexpr int64_t kSteps = 6;  // an epoch
  /// So low that val_top1 rises for some epochs; then it stays at 1.
  static constexpr const char* kRate = "2e-5";
  const TempFolder folder_;
};

TEST_F(KeepCheckpoints, AsManyAsAskedStay) {
  ASSERT_EQ(train("one", "--keep-checkpoints 1").code, 0);
  EXPECT_EQ(names("one"), (std::set<std::string>{"step-00000030"}));
  ASSERT_EQ(train("usual", "").code, 0);
  EXPECT_EQ(names("usual"), (std::set<std::string>{"step-00000024", "step-00000030"}));
  ASSERT_EQ(train("all", "--keep-checkpoints 0 --max-steps 15 --checkpoint-steps 4").code, 0);
  EXPECT_EQ(names("all").size(), 5u);  // 4, 6, 8, 12, 15
}

TEST_F(KeepCheckpoints, ComeByTimeTooOnTheSameStepOfAllRanks) {
  const std::string run = "--eval-every never --checkpoint-every 0 --keep-checkpoints 0 ";
  for (const char* minutes : {"0", "60"}) {
    ASSERT_EQ(train(minutes, run + "--checkpoint-minutes " + minutes).code, 0);
    EXPECT_EQ(names(minutes), (std::set<std::string>{"step-00000030"}));
  }
  ASSERT_EQ(train("each", run + "--checkpoint-minutes 1e-9").code, 0);
  EXPECT_EQ(names("each").size(), 26u);  // not after the last step of an epoch, but of the run
  ASSERT_EQ(train("some", run + "--checkpoint-minutes 5e-4").code, 0);  // after 30 ms
  for (const char* name : {"each", "some"})
    EXPECT_EQ(weights_hash(folder_ / name), weights_hash(folder_ / "0"));
}

TEST_F(KeepCheckpoints, TheBestByValidationStaysApartAndResumes) {
  const Ended run = train("a", "--keep-checkpoints 1 --keep-best --checkpoint-every 0");
  ASSERT_EQ(run.code, 0) << run.output;
  const int64_t epoch = best_epoch("a");
  EXPECT_TRUE(epoch > 1 && epoch < 5) << "an earlier and a later one exist\n" << run.output;
  const std::string best = fmt::format("best-{:08}", kSteps * epoch);
  EXPECT_EQ(names("a"), (std::set<std::string>{"step-00000030", best}));
  const Ended ended =
      train("b", "--keep-best --resume " + (folder_ / "a/checkpoints" / best).string());
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(weights_hash(folder_ / "a"), weights_hash(folder_ / "b"));
  EXPECT_TRUE(names("b").contains(best));
  const std::string last = (folder_ / "a/checkpoints/step-00000030").string();
  ASSERT_EQ(train("c", "--keep-best --epochs 6 --resume " + last).code, 0);
  EXPECT_TRUE(names("c").contains(best));
}

}  // namespace
}  // namespace tw::test
