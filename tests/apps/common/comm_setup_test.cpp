// --link, --ranks-per-node and --comm-timeout of train; ranks as threads and ranks as MPI processes
// give the same weights.
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(Link, EmulatedLinkDelaysTrainingAndKeepsEveryBit) {
  const TempFolder folder;
  const std::string command = fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} --model resnet20 --batch-size 8 --val-size 64 "
      "--max-steps 4 --threads-per-rank 1 --workers 4 ",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string());
  run_well(command + "--name plain");
  const Ended linked = run_well(command + "--name linked --link 100Mbit,2ms");
  const Ended nodes = run_well(command + "--name nodes --link 100Mbit,2ms --ranks-per-node 2");
  EXPECT_EQ(weights_hash(folder / "linked"), weights_hash(folder / "plain"));
  EXPECT_EQ(weights_hash(folder / "nodes"), weights_hash(folder / "plain"));

  // ring over 0.27M floats: six messages of a quarter of them
  const double expected = 6 * (0.002 + 0.27e6 * 8 / 100e6);
  for (const double seconds : table_column(folder / "linked/steps.csv", "sec_exchange"))
    EXPECT_GT(seconds, 0.95 * expected);
  EXPECT_EQ(table_column(folder / "linked/steps.csv", "sec_exchange").size(), 4u);
}

TEST(Link, UserErrorsAreOneLineAndExitCode2) {
  const auto says = [](const std::string& arguments, const std::string& expected,
                       const std::string& program = TW_TRAIN) {
    const Ended ended = run_command(fmt::format("{} {}", program, arguments));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_EQ(ended.lines(), 1u) << ended.output;
    EXPECT_TRUE(ended.says(expected)) << ended.output;
  };
  says("--link 1Gbit", "[link] link is \"1Gbit\"; expected RATE,LATENCY as in 1Gbit,0.4ms, or ");
  says("--link 1Gb,1ms", "[link] rate is \"1Gb\"");
  says("--comm-timeout -1", "comm-timeout");
  const TempFolder folder;
  const auto file = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const std::string two = file("two.json", R"({"link": "1Gbit,1ms", "ranks_per_node": 2})"),
                    error = fmt::format("but {} has 2 ranks a node", two);
  for (const std::string program : {TW_TRAIN, TW_BIN "/bench comm", TW_BIN "/advise"})
    says("--ranks-per-node 1 --link " + two, "[link] ranks-per-node is 1, " + error, program);
  says(fmt::format("--config {} --link {}", file("three.json", R"({"ranks_per_node": 3})"), two),
       "[link] ranks-per-node is 3, " + error);
}

TEST(NcclTransport, UserErrorsAreOneLineAndExitCode2) {
  const auto says = [](const std::string& arguments, const std::string& expected) {
    for (const char* ranks : {"", " --workers 2"}) {
      const Ended ended = run_command(fmt::format("{} {}{}", TW_TRAIN, arguments, ranks));
      EXPECT_EQ(ended.code, 2) << ended.output;
      EXPECT_EQ(ended.lines(), 1u) << ended.output;
      EXPECT_TRUE(ended.says(expected)) << ended.output;
    }
  };
  says("--transport nccl --device cpu", "[options] transport is nccl, ");
  says("--transport tcp", "transport");
  const std::string lacking = what_nccl_lacks();
  if (lacking.empty()) GTEST_SKIP() << "nothing that NCCL needs is missing here";
  says("--transport nccl", fmt::format("[options] transport is nccl, but {}", lacking));
}

TEST(NcclTransport, MissingRequirementsAreAUserError) {
  const std::string lacking = what_nccl_lacks();
  if (lacking.empty()) GTEST_SKIP() << "nothing that NCCL needs is missing here";
  const auto self = make_self_communicator();
  Context ctx;
  std::string notice;
  EXPECT_EQ(error_text<UserError>([&] { make_nccl_communicator(ctx, *self, notice); }),
            "[nccl] " + lacking);
}

std::string train(const TempFolder& folder, const std::string& launcher,
                  const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} {} --output-dir {} --model resnet20 --batch-size 8 "
      "--max-steps 12 --val-size 64 --threads-per-rank 1 --lr 0.02 --density 0.01 {}",
      TW_TEST_CACHE, launcher, TW_TRAIN, folder.path().string(), arguments);
}

class Transports : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  }
};

TEST_P(Transports, GiveTheSameWeights) {
  const TempFolder folder;
  const std::string sparsifier = "--sparsifier " + GetParam();
  const Ended threads = run_well(train(folder, "", sparsifier + " --workers 4 --name threads"));
  const Ended mpi =
      run_well(train(folder, std::string(TW_MPIRUN) + " -n 4", sparsifier + " --name mpi"));
  EXPECT_EQ(weights_hash(folder / "threads"), weights_hash(folder / "mpi"));
}

INSTANTIATE_TEST_SUITE_P(Sparsifiers, Transports, testing::Values("dense", "topk", "gaussiank"));

using TransportErrors = Transports;

TEST_P(TransportErrors, AreOneLineAndExitCode2UnderMpirun) {
  const TempFolder folder;
  const Ended ended = run_command(train(folder, std::string(TW_MPIRUN) + " -n 3", GetParam()));
  EXPECT_EQ(ended.code, 2) << ended.output;
  const size_t first = ended.output.find("error: ");
  ASSERT_NE(first, std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find("error: ", first + 1), std::string::npos) << ended.output;
}

INSTANTIATE_TEST_SUITE_P(Mistakes, TransportErrors,
                         testing::Values("--modle x", "--workers 3", "--density 2",
                                         "--batch-size 10000", "--output-dir /dev/null/runs",
                                         "--transport nccl --device cpu"));

}  // namespace
}  // namespace tw::test
