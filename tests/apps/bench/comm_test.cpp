// `bench comm`: times collectives and sparse exchanges.
#include "tests/support/program.h"

namespace tw::test {
namespace {

Ended bench_comm(const std::string& arguments) {
  return run_command(fmt::format("{}/bench comm {}", TW_BIN, arguments));
}

TEST(BenchComm, ChecksAndTimesEveryCollective) {
  const Ended ended =
      bench_comm("--workers 3 -b 64 -e 4K -f 8 -n 1 -w 1 --link 1Gbit,0.4ms --simulated-clock");
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* text :
       {"broadcast  recursive_halving", "broadcast  linear_pipeline", "broadcast  binomial_tree",
        "reduce     recursive_halving", "reduce     linear_pipeline", "reduce     binomial_tree",
        "allreduce  recursive_halving", "allreduce  linear_pipeline", "allreduce  binomial_tree",
        "allreduce  ring", "allgather  bruck", "sparse     allgather", "sparse     gtopk",
        "sparse     oktopk", "sparse     exact", "sparse     scalecom", "low_rank   powersgd",
        "gamma", "#wrong"})
    EXPECT_TRUE(ended.says(text)) << text << " is missing in\n" << ended.output;
}

TEST(BenchComm, HasNoModelOfRanksThatShareAPort) {
  for (const int each : {1, 2}) {
    const Ended ended = bench_comm(
        fmt::format("--workers 4 -b 4K -e 4K -n 1 --collective broadcast --implementation "
                    "binomial_tree --link 1Gbit,0.4ms --simulated-clock --ranks-per-node {}",
                    each));
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(ended.says(" -       0\n"), each == 2) << ended.output;  // model us, #wrong
  }
}

TEST(BenchComm, ChecksGtopkAlsoWhereItsTreePrunes) {
  const Ended ended = bench_comm(
      "--workers 8 -b 4K -e 4K -n 1 -w 1 --collective sparse --implementation gtopk "
      "--density 0.5");
  EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST(BenchComm, UserErrorsAreOneLineAndExitCode2) {
  for (const char* arguments :
       {"--workers 2 --root 2", "--workers 2 -b 4K -e 1K", "--workers 2 --set lp.block=x",
        "--workers 2 --implementation native", "--workers 2 --collective gather", "-b 0",
        "--workers 2 --iteration 3", "--workers 2 --link 1Gbit", "--simulated-clock"}) {
    const Ended ended = bench_comm(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << "\n" << ended.output;
    EXPECT_EQ(ended.lines(), 1u) << arguments << "\n" << ended.output;
  }
}

TEST(BenchComm, RunsUnderMpirun) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  expect_end(fmt::format("{} -n 3 {}/bench comm -b 4K -e 4K -n 2 --collective allreduce", TW_MPIRUN,
                         TW_BIN),
             0, "allreduce  vendor");
  const Ended mistake = run_command(fmt::format("{} -n 3 {}/bench comm --frob", TW_MPIRUN, TW_BIN));
  EXPECT_EQ(mistake.code, 2) << mistake.output;
}

}  // namespace
}  // namespace tw::test
