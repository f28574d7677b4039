// A process that dies or hangs in training: mpirun ends in time, and the run can be resumed. A job
// that is stopped as a whole continues.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = 8s;  // of --comm-timeout

/// The processes below `parent`, in the order in which they were started.
std::vector<pid_t> descendants(pid_t parent) {
  std::vector<pid_t> all;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
  for (pid_t child; children >> child;) {
    all.push_back(child);
    for (const pid_t below : descendants(child)) all.push_back(below);
  }
  return all;
}

std::vector<pid_t> ranks_below(pid_t launcher) {
  std::vector<pid_t> ranks;
  for (const pid_t process : descendants(launcher)) {
    std::ifstream in(fmt::format("/proc/{}/comm", process));
    std::string name;
    if (in >> name && name == "train") ranks.push_back(process);
  }
  return ranks;
}

struct Started {
  pid_t launcher;
  std::filesystem::path output;

  Started(const std::string& command, std::filesystem::path output_file)
      : launcher(::fork()), output(std::move(output_file)) {
    if (launcher != 0) return;
    const std::string line = fmt::format("exec env {} >{} 2>&1", command, output.string());
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }

  /// Waits for the end of the program. Kills it at `deadline`; its exit code is then 137.
  Ended wait(Clock::time_point deadline) const {
    int status = 0;
    while (::waitpid(launcher, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(20ms);
      if (Clock::now() < deadline) continue;
      for (const pid_t process : descendants(launcher)) ::kill(process, SIGKILL);
      ::kill(launcher, SIGKILL);
    }
    Ended ended;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::ifstream in(output);
    ended.output.assign(std::istreambuf_iterator<char>(in), {});
    return ended;
  }
};

/// Whether a process exists and is not a zombie.
bool lives(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string id, name;
  char state = 'Z';
  return in >> id >> name >> state && state != 'Z' && state != 'X';
}

/// Sparsifier, rank, and the signal sent to the rank.
using Death = std::tuple<std::string, size_t, int>;

class DyingRank : public testing::TestWithParam<Death> {};

TEST_P(DyingRank, EndsTheRunInTimeAndTheRunResumes) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const auto& [sparsifier, rank, signal] = GetParam();
  const TempFolder folder;
  const std::string command = fmt::format(
      "THINWIRE_CACHE={} {} -n 3 {} --output-dir {} {} --model resnet20 --batch-size 8 --epochs "
      "2 --eval-every 2 --checkpoint-steps 5 --threads-per-rank 1 --density 0.01 "
      "--sparsifier {} "
      "--comm-timeout {} ",
      TW_TEST_CACHE, TW_MPIRUN, TW_TRAIN, folder.path().string(), short_epochs(folder.path()),
      sparsifier, kTimeout.count());

  const Started run(command + "--name cut", folder / "output");
  const std::filesystem::path checkpoint = folder / "cut/checkpoints/step-00000005";
  for (int i = 0; i < 6000 && !std::filesystem::exists(checkpoint); ++i)
    std::this_thread::sleep_for(10ms);
  const std::vector<pid_t> ranks = ranks_below(run.launcher);
  ASSERT_EQ(ranks.size(), 3u);
  ASSERT_EQ(::kill(ranks[rank], signal), 0);

  const auto start = Clock::now();
  const Ended ended = run.wait(start + kTimeout + 20s);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  EXPECT_NE(ended.code, 0) << ended.output;
  EXPECT_LT(seconds, kTimeout + 5s) << ended.output;
  // the launcher has killed them; the system may need a moment to end them
  for (const pid_t process : ranks) {
    for (int i = 0; i < 500 && lives(process); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_FALSE(lives(process));
  }
  if (signal == SIGSTOP) {
    EXPECT_EQ(ended.code, 1) << ended.output;
    // contains the name of the collective
    const std::regex line(fmt::format(
        "\\[(?!comm\\])[a-z/-]+\\] rank \\d has waited {} s for rank \\d", kTimeout.count()));
    EXPECT_TRUE(std::regex_search(ended.output, line)) << ended.output;
    const std::string advice = fmt::format("continue with mpirun -n 3 {} --resume {}\n", TW_TRAIN,
                                           (folder / "cut").string());
    EXPECT_TRUE(ended.says(advice)) << ended.output;
  } else {
    // the launcher kills the others at once, so the advice is among the first lines
    EXPECT_TRUE(ended.says(fmt::format("after a kill: mpirun -n 3 {} --resume {}\n", TW_TRAIN,
                                       (folder / "cut").string())))
        << ended.output;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "cut/summary.json"));

  const Ended resumed = run_well(command + "--name cut --resume auto");
  EXPECT_TRUE(resumed.says("resuming")) << resumed.output;
  run_well(command + "--name whole");
  EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole"));
}

TEST(FrozenRank, BeforeMpiStartsEndsTheRunInTimeWithOneLine) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const TempFolder folder;
  const std::filesystem::path rank = folder / "rank.sh";
  std::ofstream(rank)
      << "[ \"$PMI_RANK$OMPI_COMM_WORLD_RANK\" = 0 ] && kill -STOP $$\nexec " TW_TRAIN " --list\n";
  const auto start = Clock::now();
  const Started run(fmt::format("THINWIRE_START_TIMEOUT=2 {} -n 3 sh {}", TW_MPIRUN, rank.string()),
                    folder / "output");
  const Ended ended = run.wait(start + 30s);
  EXPECT_NE(ended.code, 0) << ended.output;  // that of rank 1, or of a rank that mpirun killed
  EXPECT_TRUE(ended.says("error: [mpi] rank 1 has waited 2 s in MPI_Init")) << ended.output;
  EXPECT_FALSE(ended.says("rank 2 has waited")) << ended.output;
}

// MPICH's launcher forwards a signal to a proxy of its own that has not started the ranks yet. The
// proxy starts them all the same, then waits for their end and answers none of them.
TEST(SignalledLauncher, BeforeItsRanksStartEndsInTimeWithAllRanks) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const TempFolder folder;
  bool limited = false;  // by the timeout; the proxy is sometimes found too late
  for (int attempt = 0; attempt < 8 && !limited; ++attempt) {
    const Started run(
        fmt::format("THINWIRE_START_TIMEOUT=2 {} -n 3 {} --list", TW_MPIRUN, TW_TRAIN),
        folder / "output");
    std::vector<pid_t> below;
    while (below.empty() && lives(run.launcher)) below = descendants(run.launcher);
    ASSERT_FALSE(below.empty()) << run.wait(Clock::now()).output;
    ::kill(below[0], SIGSTOP);
    ::kill(run.launcher, SIGTERM);
    std::this_thread::sleep_for(100ms);  // for the launcher to forward the signal
    ::kill(below[0], SIGCONT);
    std::this_thread::sleep_for(500ms);  // for the proxy to start the ranks
    below = descendants(run.launcher);
    const auto deadline = Clock::now() + 15s;
    const Ended ended = run.wait(deadline);
    EXPECT_NE(ended.code, 137) << ended.output;
    limited = deadline - Clock::now() < 14s;
    for (const pid_t process : below) {
      while (lives(process) && Clock::now() < deadline) std::this_thread::sleep_for(10ms);
      EXPECT_FALSE(lives(process));
    }
  }
}

// as Ctrl-Z and fg
TEST(PausedJob, ContinuesAfterMoreThanTheTimeout) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const TempFolder folder;
  const Started job(
      fmt::format("THINWIRE_CACHE={} {} -n 2 {} --output-dir {} {} --name paused --model resnet20 "
                  "--batch-size 8 --epochs 2 --eval-every 2 --checkpoint-steps 2 "
                  "--threads-per-rank 1 --comm-timeout 3",
                  TW_TEST_CACHE, TW_MPIRUN, TW_TRAIN, folder.path().string(),
                  short_epochs(folder.path())),
      folder / "output");
  const std::filesystem::path checkpoint = folder / "paused/checkpoints/step-00000002";
  for (int i = 0; i < 6000 && !std::filesystem::exists(checkpoint); ++i)
    std::this_thread::sleep_for(10ms);
  const std::vector<pid_t> ranks = ranks_below(job.launcher);
  ASSERT_EQ(ranks.size(), 2u);
  // the other one then waits for it
  ASSERT_EQ(::kill(ranks[1], SIGSTOP), 0);
  std::this_thread::sleep_for(500ms);
  std::vector<pid_t> all = descendants(job.launcher);
  all.push_back(job.launcher);
  for (const pid_t process : all) ASSERT_EQ(::kill(process, SIGSTOP), 0);
  std::this_thread::sleep_for(5s);
  EXPECT_FALSE(std::filesystem::exists(folder / "paused/summary.json")) << "stopped too late";
  for (const pid_t process : all) ASSERT_EQ(::kill(process, SIGCONT), 0);
  const Ended ended = job.wait(Clock::now() + 60s);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(std::filesystem::exists(folder / "paused/summary.json")) << ended.output;
}

INSTANTIATE_TEST_SUITE_P(Ranks, DyingRank,
                         testing::Values(Death{"dense", 1, SIGKILL}, Death{"dense", 0, SIGSTOP},
                                         Death{"topk", 0, SIGKILL}, Death{"topk", 2, SIGSTOP},
                                         Death{"gtopk", 1, SIGSTOP}, Death{"oktopk", 1, SIGKILL},
                                         Death{"hierarchical", 2, SIGSTOP},
                                         Death{"topk --local-steps 4", 1, SIGSTOP},
                                         Death{"dense --local-steps 4", 2, SIGKILL}));

}  // namespace
}  // namespace tw::test
