// `--density-of` reaches the plan of a training.
#include "apps/common/options.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

// fc3.weight of LeNet has 84 x 10 elements, a hundredth of which is 8
TEST(DensityOf, IsInThePlan) {
  const std::string command = fmt::format(
      "{} --model lenet --dataset shapes --sparsifier topk --scope layer --density 0.01 "
      "--density-warmup none --dry-run --json --workers 2",
      TW_TRAIN);
  const auto entries = [&](const std::string& options) {
    return Json::parse(run_well(command + options).output)["stages"][0]["entries"].get<int64_t>();
  };
  EXPECT_EQ(entries(" --density-of fc3.weight=1") - entries(""), 840 - 8);
  const Ended unknown = run_command(command + " --density-of nothing=1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(unknown.says("density-of names nothing")) << unknown.output;
}

TEST(DensityOf, OfAllTensorsLeavesTheDensityOfTheStepWithoutEffect) {
  const auto tells = [](const std::string& density_of, const std::string& text) {
    return run_well(fmt::format("{} --model lenet --dataset shapes --sparsifier topk --scope layer "
                                "--dry-run --workers 2 --density-of {}",
                                TW_TRAIN, density_of))
        .says(text);
  };
  for (const char* text : {"density warm-up", "from epoch 3 on"}) {
    EXPECT_FALSE(tells("'*=0.01,fc3=1'", text));
    EXPECT_TRUE(tells("fc3=1", text));
  }
  EXPECT_FALSE(tells("'*=0.01' --density 1", "all entries are sent"));
}

}  // namespace
}  // namespace tw::test
