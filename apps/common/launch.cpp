#include "apps/common/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

#include "apps/common/options.h"
#include "comm/launcher.h"
#include "comm/transports.h"
#include "engine/core/buffer.h"
#include "engine/core/error.h"
#include "engine/core/instruction_set.h"
#include "engine/core/utf8.h"

namespace tw {

std::string program_path() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

std::string error_line(const std::exception& error) { return "error: " + printable(error.what()); }

namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // else no signal handler may touch it

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// Whether the parent asked to ignore SIGHUP, as nohup does. Found out before the constructors of
// libraries: that of UCX, which MPI uses, handles the signal.
bool hangup_ignored = false;

void note_hangup(int, char**, char**) {
  struct sigaction found {};
  hangup_ignored = sigaction(SIGHUP, nullptr, &found) == 0 && found.sa_handler == SIG_IGN;
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char**,
                                                                             char**) = note_hangup;

void on_signal(int) {
  stop_requested = true;
  for (const int next : kStopSignals) {
    // nobody may read what is still printed
    const bool ignored = next == SIGPIPE || (next == SIGHUP && hangup_ignored);
    std::signal(next, ignored ? SIG_IGN : SIG_DFL);
  }
}

/// Makes threads that wait for each other spin for at most about 0.1 ms, not several milliseconds:
/// where other programs take a core, the spinning takes it from the thread that the others wait
/// for. libgomp reads the variable when it is loaded, so the program starts again, as the same
/// process. OMP_WAIT_POLICY and GOMP_SPINCOUNT of the user count.
void spin_briefly(char** argv) {
  constexpr const char* kSpins = "GOMP_SPINCOUNT";
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv(kSpins)) return;
  ::setenv(kSpins, "2000", 1);
  ::execv(program_path().c_str(), argv);  // returns if it fails; then threads spin longer
}

/// Opens /dev/null in place of the standard streams that are closed, so that no file takes their
/// number and gets what is meant for them. The wrong way round: using them is still an error.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)  // the lowest free number
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

int report(const std::exception& error, int code) {
  write_error_line(error_line(error));
  return code;
}

/// What an error says; one of the standard library, or of memory, with what can be done.
Fault as_fault(const std::exception& error) {
  constexpr const char* kLess = "a smaller batch or network, or fewer ranks or threads, take less";
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return Fault(fmt::format("[file] {}: {}", file->path1().string(), file->code().message()));
  if (dynamic_cast<const OutOfMemory*>(&error))
    return Fault(fmt::format("{}; {}", error.what(), kLess));
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return Fault(fmt::format("[memory] no memory is left (ulimit -v limits it); {}", kLess));
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system && system->code() == std::errc::resource_unavailable_try_again)  // of std::thread
    return Fault(fmt::format(
        "[threads] a thread cannot start: no memory or thread is left (ulimit -v, -u); {}", kLess));
  return Fault(error.what());
}

/// Writes the rest of the output. Returns 1, after one line, if it could not be written.
int flush_output() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  write_error_line(fmt::format("error: cannot write to standard output: {}", std::strerror(errno)));
  return 1;
}

/// Whether this process speaks for all ranks. Processes of a launcher whose ranks do not
/// find each other are worlds of their own; where their number is unknown, rank 0 does not know of
/// the others, so rank 1 speaks, too.
bool reports(const Communicator* world) {
  if (world && world->size() > 1) return world->rank() == 0;
  const std::optional<Launcher> launcher = find_launcher();
  return !launcher || launcher->rank == 0 || (launcher->rank == 1 && launcher->ranks == 0);
}

}  // namespace

const std::atomic<bool>& stop_signal() {
  // a program that never calls this is ended by the first signal
  static const bool installed = [] {
    for (const int signal : kStopSignals)
      std::signal(signal, signal == SIGHUP && hangup_ignored ? SIG_IGN : on_signal);
    return true;
  }();
  static_cast<void>(installed);
  return stop_requested;
}

void keep_signals_from_computing() {
  std::thread([] {
    while (true) ::pause();
  }).detach();
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kStopSignals)
    if (signal != SIGPIPE) ::sigaddset(&signals, signal);  // it goes to the thread that writes
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int run_program(char** argv, const std::function<int(Communicator&)>& body) {
  std::signal(SIGHUP, hangup_ignored ? SIG_IGN : SIG_DFL);  // in place of the handler of UCX
  if (argv) spin_briefly(argv);
  fill_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails as on a full disk
  set_gpu_connections();
  std::unique_ptr<Communicator> world;
  const bool mpi = started_by_mpi();
  int code = 0;
  std::string shared;  // the line of an error that other ranks may have, too
  try {
    world = mpi ? make_mpi_communicator() : make_self_communicator();
    instruction_set();  // a wrong THINWIRE_CPU ends the program here
    code = body(*world);
  } catch (const HelpText& help) {
    if (reports(world.get())) std::fputs(help.text.c_str(), stdout);
  } catch (const LocalUserError& error) {
    code = report(error, 2);
    if (world) world->abort(error.what(), code);
  } catch (const UserError& error) {
    code = 2;
    shared = error_line(error);
  } catch (const CollectiveFault& error) {  // of the numbers: it would come again
    code = 4;
    shared = error_line(error);
  } catch (const std::exception& error) {
    const Fault fault = as_fault(error);
    code = report(fault, 1);
    if (world) world->abort(fault.what(), code);
  }
  if (code == 0) code = flush_output();
  if (!shared.empty() && (!world || world->size() == 1)) {
    // a launcher ends all processes when the first fails; the one that reports goes first
    if (reports(world.get()))
      write_error_line(shared);
    else
      std::this_thread::sleep_for(std::chrono::seconds(1));
    shared.clear();
  }
  const double timeout = world ? world->timeout() : 0;
  world.reset();
  return mpi ? finish_mpi(code, shared, timeout) : code;
}

void check_ranks(const Communicator& world, int64_t workers) {
  const std::optional<Launcher> launcher = find_launcher();
  const bool mpi = launcher && launcher->for_mpi;
  check(workers == 0 || !mpi,
        "[options] workers is {} under mpirun, where -n sets the number of ranks; --workers is for "
        "ranks as threads (if it comes from a configuration file: add --workers 0)",
        workers);
  // in a Slurm job, threads may be the ranks where this process is the only one
  if (workers == 0 || (launcher && launcher->one_of_several))
    check_launcher(launcher, world.size(), mpi_library());
}

}  // namespace tw
