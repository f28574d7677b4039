// A slow rank of an emulated cluster, in a training.
#include <fstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(SlowRank, ComputesForAsLongAsItsFactorSays) {
  const TempFolder folder;
  std::ofstream(folder / "cluster.json") << R"({"link": "100Gbit,0us", "slow": {"0": 40}})";
  run_well(fmt::format(
      "{} --model lenet --dataset shapes --workers 1 --batch-size 8 --max-steps 6 --epochs 1 "
      "--eval-every 100 --link {} --output-dir {} --name run",
      TW_TRAIN, (folder / "cluster.json").string(), folder.path().string()));
  const auto forward = table_column(folder / "run/steps.csv", "sec_forward"),
             backward = table_column(folder / "run/steps.csv", "sec_backward");
  ASSERT_EQ(forward.size(), 6u);
  // 39 times both is added to backward; with one rank both are of the same rank
  for (size_t i = 0; i < forward.size(); ++i)
    EXPECT_GT(backward[i], 39 * forward[i]) << "step " << i;
}

TEST(SlowRank, ExcludesOverlap) {
  const TempFolder folder;
  const std::string file = (folder / "cluster.json").string();
  std::ofstream(file) << R"({"link": "100Gbit,0us", "slow": {"0": 40}})";
  const Ended ended =
      run_command(fmt::format("{} --dry-run --scope layer --overlap --link {}", TW_TRAIN, file));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.says("link has slow ranks")) << ended.output;
}

TEST(Cluster, TheRanksOfANodeAreThoseOfHierarchicalToo) {
  const TempFolder folder;
  const std::string file = (folder / "cluster.json").string();
  std::ofstream(file) << R"({"link": "100Gbit,0us", "ranks_per_node": 2})";
  const auto bytes = [&](const std::string& name, const std::string& link) {
    run_well(fmt::format(
        "{} --model lenet --dataset shapes --workers 4 --batch-size 8 --max-steps 2 --epochs 1 "
        "--eval-every 100 --sparsifier hierarchical --link {} --output-dir {} --name {}",
        TW_TRAIN, link, folder.path().string(), name));
    return table_column(folder / name / "steps.csv", "bytes_sent");
  };
  EXPECT_EQ(bytes("file", file), bytes("option", "100Gbit,0us --ranks-per-node 2"));
}

}  // namespace
}  // namespace tw::test
