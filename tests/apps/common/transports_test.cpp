// Ranks as threads and ranks as MPI processes give the same weights.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace tw::test {
namespace {

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
  const Ended threads = run_command(train(folder, "", sparsifier + " --workers 4 --name threads"));
  ASSERT_EQ(threads.code, 0) << threads.output;
  const Ended mpi =
      run_command(train(folder, std::string(TW_MPIRUN) + " -n 4", sparsifier + " --name mpi"));
  ASSERT_EQ(mpi.code, 0) << mpi.output;
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
