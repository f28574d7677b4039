// Start and end of a program: environment, standard streams, signals, launchers, exit codes.
#include "apps/common/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <system_error>
#include <thread>

#include "engine/core/buffer.h"
#include "engine/ops/linear.h"
#include "tests/support/op_check.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

std::string connections_inside_a_program() {
  std::string found;
  const auto program = [&](Communicator&) {
    const char* value = std::getenv(kConnections);
    found = value == nullptr ? "" : value;
    return 0;
  };
  EXPECT_EQ(run_program(nullptr, program), 0);
  return found;
}

TEST(Launch, AProgramHas32ConnectionsToTheGpu) {
  unsetenv(kConnections);
  EXPECT_EQ(connections_inside_a_program(), "32");
}

TEST(Launch, TheNumberOfConnectionsInTheEnvironmentIsKept) {
  setenv(kConnections, "4", 1);
  EXPECT_EQ(connections_inside_a_program(), "4");
  unsetenv(kConnections);
}

/// How long OpenMP's threads spin in `train`, as libgomp reads it, when these variables are set.
std::string spins_under(const std::string& variables) {
  const Ended ended = run_command(fmt::format(
      "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose {} {}/train --version "
      "2>&1 | grep GOMP_SPINCOUNT | tail -1",
      variables, TW_BIN));
  const size_t begin = ended.output.find('\''), end = ended.output.rfind('\'');
  return begin < end ? ended.output.substr(begin + 1, end - begin - 1) : ended.output;
}

TEST(Launch, WaitingThreadsSpinBrieflyUnlessTheUserSaysHowLong) {
  EXPECT_EQ(spins_under(""), "2000");
  EXPECT_EQ(spins_under("GOMP_SPINCOUNT=7"), "7");
  EXPECT_EQ(spins_under("OMP_WAIT_POLICY=passive"), "0");
}

TEST(Launch, AProgramThatStartsAgainKeepsItsWords) {
  const Ended ended = run_command(fmt::format(
      "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT {}/train --model 'a  b' --lr '' x", TW_BIN));
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_EQ(ended.lines(), 1u) << ended.output;
  EXPECT_TRUE(ended.says("unexpected argument \"x\"")) << ended.output;
}

/// What `train` says when these variables are set.
Ended train_under(const std::string& variables, const std::string& options = "") {
  const TempFolder folder;
  return run_command(fmt::format(
      "{} {}/train --model mlp --dataset shapes --max-steps 1 --epochs 1 --output-dir {} {}",
      variables, TW_BIN, folder.path().string(), options));
}

TEST(Launch, ProcessesThatDoNotFindEachOtherEndWithOneLine) {
  // without a launcher's socket, MPI makes each process a world of its own
  for (const char* variables :
       {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4", "SLURM_NTASKS=4"}) {
    const Ended ended = train_under(variables);
    EXPECT_EQ(ended.code, 2) << variables << "\n" << ended.output;
    EXPECT_EQ(ended.output.find("error: [mpi] "), 0u) << ended.output;
    EXPECT_EQ(ended.output.find('\n'), ended.output.size() - 1) << ended.output;
  }
}

TEST(Launch, OnlyTheFirstOfThemReports) {
  const Ended ended = train_under("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.output, "");
}

TEST(Launch, OutputThatCannotBeWrittenIsOneLineAndExitCode1) {
  for (const char* program : {"train", "bench", "bench comm", "advise", "analyze", "pack"})
    for (const char* flag : {"--help", "--version", "--list"}) {
      if (std::string(flag) == "--list" && std::string(program) != "train") continue;
      const Ended ended =
          run_command(fmt::format("sh -c '{}/{} {} >/dev/full'", TW_BIN, program, flag));
      EXPECT_EQ(ended.code, 1) << program << flag << ended.output;
      EXPECT_EQ(ended.output, "error: cannot write to standard output: No space left on device\n")
          << program << flag;
    }
}

/// The line and exit code of a program that throws this.
template <class Error>
Ended ended_by(const Error& error) {
  testing::internal::CaptureStderr();
  const int code = run_program(nullptr, [&](Communicator&) -> int { throw error; });
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(Launch, SaysWhatToDoWhenMemoryOrThreadsRunOut) {
  const std::string less = "; a smaller batch or network, or fewer ranks or threads, take less\n";
  const Ended memory = ended_by(std::bad_alloc()), buffer = ended_by(OutOfMemory("[buffer] full")),
              thread = ended_by(std::system_error(
                  std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(memory.output, "error: [memory] no memory is left (ulimit -v limits it)" + less);
  EXPECT_EQ(buffer.output, "error: [buffer] full" + less);
  EXPECT_EQ(
      thread.output,
      "error: [threads] a thread cannot start: no memory or thread is left (ulimit -v, -u)" + less);
  for (const Ended& ended : {memory, buffer, thread}) EXPECT_EQ(ended.code, 1) << ended.output;
}

TEST(Launch, ThreadsRunInsideASlurmJob) {
  EXPECT_EQ(train_under("SLURM_NTASKS=4", "--workers 2").code, 0);
  EXPECT_EQ(train_under("SLURM_NTASKS=4 SLURM_PROCID=0", "--workers 1").code, 0);
}

TEST(Launch, ThreadsAreRefusedWhereSrunStartedSeveralProcesses) {
  const std::string step = "SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=";
  const Ended first = train_under(step + "0", "--workers 1");
  EXPECT_EQ(first.code, 2) << first.output;
  EXPECT_TRUE(first.output.starts_with("error: [mpi] srun started 4 processes")) << first.output;
  EXPECT_EQ(first.lines(), 1u) << first.output;
  const Ended other = train_under(step + "2", "--workers 1");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.output, "");  // the first process reports
  EXPECT_EQ(train_under("SLURM_NTASKS=4 SLURM_PROCID=2", "--workers 1").code, 2);
}

TEST(Launch, ARankWithoutANumberOfRanksIsNotAlone) {
  const Ended ended = train_under("PMIX_RANK=1");
  EXPECT_EQ(ended.code, 2) << ended.output;
  const std::string reason = *TW_MPIRUN ? "a PMIx launcher started several processes"
                                        : "this program was built without MPI";
  EXPECT_TRUE(ended.output.starts_with("error: [mpi] " + reason)) << ended.output;
  EXPECT_EQ(ended.lines(), 1u) << ended.output;
}

TEST(Launch, AnErrorThatCannotBeWrittenKeepsItsExitCode) {
  for (const char* to : {"2>&-", "2>/dev/full"})
    EXPECT_EQ(run_command(fmt::format("sh -c '{}/train --bogus {}'", TW_BIN, to)).code, 2) << to;
  EXPECT_EQ(run_command(fmt::format("sh -c '{}/train --help >/dev/full 2>&-'", TW_BIN)).code, 1);
}

TEST(LaunchDeathTest, NoFileTakesTheNumberOfAClosedStream) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto file_of_a_program = [] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    std::_Exit(run_program(nullptr, [](Communicator&) { return ::open("/dev/null", O_RDONLY); }));
  };
  EXPECT_EXIT(
      file_of_a_program(), [](int status) { return WEXITSTATUS(status) > 2; }, "");
}

TEST(LaunchDeathTest, TwoDifferentSignalsEndTheProgramAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupted = [] {
    static_cast<void>(stop_signal().load());
    std::raise(SIGINT);
    std::raise(SIGTERM);
    std::_Exit(stop_signal() ? 0 : 1);
  };
  EXPECT_EXIT(interrupted(), testing::KilledBySignal(SIGTERM), "");
}

TEST(Launch, AStartTimeoutThatIsNoNumberOfSecondsIsRefused) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const auto listed = [](const char* seconds) {
    return run_command(fmt::format("THINWIRE_START_TIMEOUT={} {} -n 2 {}/train --version", seconds,
                                   TW_MPIRUN, TW_BIN));
  };
  for (const char* wrong : {"abc", "nan", "-5", "5s", "''"}) {
    const Ended ended = listed(wrong);
    EXPECT_EQ(ended.code, 2) << wrong << ended.output;
    EXPECT_TRUE(ended.says("error: [mpi] THINWIRE_START_TIMEOUT is ")) << ended.output;
    EXPECT_EQ(ended.output.find("THINWIRE"), ended.output.rfind("THINWIRE")) << ended.output;
  }
  for (const char* seconds : {"0", "1e10", "inf"}) EXPECT_EQ(listed(seconds).code, 0) << seconds;
}

TEST(Launch, NoLibraryHandlesAHangup) {
  const auto body = [](Communicator&) {
    const auto found = std::signal(SIGHUP, SIG_DFL);
    return found == SIG_DFL || found == SIG_IGN ? 0 : 1;
  };
  EXPECT_EQ(run_program(nullptr, body), 0);
}

TEST(LaunchDeathTest, NoSignalInterruptsAMatrixProduct) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupted = [] {
    keep_signals_from_computing();
    static std::atomic<bool> here = false, elsewhere = false;
    std::signal(SIGTERM, [](int) { (::gettid() == ::getpid() ? here : elsewhere) = true; });
    std::jthread sender([](const std::stop_token& stop) {
      while (!stop.stop_requested()) ::kill(::getpid(), SIGTERM);
    });
    Context ctx(Device::cpu);
    const auto linear = ops::Linear::create(ctx, {32, 256, 128});
    const Scratch scratch(ctx, linear->scratch_bytes());
    const OwnedTensor packed({static_cast<int64_t>(linear->packed_bytes())}, DType::u8),
        x({32, 256}, DType::f32), bias({128}, DType::f32), y({32, 128}, DType::f32);
    for (int i = 0; i < 2000; ++i) linear->forward(ctx, x, packed, bias, y);
    std::_Exit(elsewhere && !here ? 0 : 1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tw::test
