// `--density-of` reaches the plan of a training.
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
    const Ended ended = run_command(command + options);
    EXPECT_EQ(ended.code, 0) << ended.output;
    return Json::parse(ended.output)["stages"][0]["entries"].get<int64_t>();
  };
  EXPECT_EQ(entries(" --density-of fc3.weight=1") - entries(""), 840 - 8);
  const Ended unknown = run_command(command + " --density-of nothing=1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(unknown.says("density-of names nothing")) << unknown.output;
}

}  // namespace
}  // namespace tw::test
