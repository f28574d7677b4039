// A slow rank of an emulated cluster, in a training.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

/// Columns of steps.csv.
std::vector<std::vector<double>> columns(const std::filesystem::path& file,
                                         const std::vector<std::string>& names) {
  std::istringstream rows(text_of(file));
  std::string row, cell;
  std::getline(rows, row);
  std::vector<std::string> head;
  for (std::istringstream cells(row); std::getline(cells, cell, ',');) head.push_back(cell);
  std::vector<std::vector<double>> columns(names.size());
  while (std::getline(rows, row)) {
    std::vector<std::string> values;
    for (std::istringstream cells(row); std::getline(cells, cell, ',');) values.push_back(cell);
    for (size_t i = 0; i < names.size(); ++i)
      columns[i].push_back(std::stod(values.at(std::ranges::find(head, names[i]) - head.begin())));
  }
  return columns;
}

TEST(SlowRank, ComputesForAsLongAsItsFactorSays) {
  const TempFolder folder;
  std::ofstream(folder / "cluster.json") << R"({"link": "100Gbit,0us", "slow": {"0": 40}})";
  run_well(fmt::format(
      "{} --model lenet --dataset shapes --workers 1 --batch-size 8 --max-steps 6 --epochs 1 "
      "--eval-every 100 --link {} --output-dir {} --name run",
      TW_TRAIN, (folder / "cluster.json").string(), folder.path().string()));
  const auto seconds = columns(folder / "run/steps.csv", {"sec_forward", "sec_backward"});
  ASSERT_EQ(seconds[0].size(), 6u);
  // 39 times both is added to backward; with one rank both are of the same rank
  for (size_t i = 0; i < seconds[0].size(); ++i)
    EXPECT_GT(seconds[1][i], 39 * seconds[0][i]) << "step " << i;
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
    return columns(folder / name / "steps.csv", {"bytes_sent"})[0];
  };
  EXPECT_EQ(bytes("file", file), bytes("option", "100Gbit,0us --ranks-per-node 2"));
}

}  // namespace
}  // namespace tw::test
