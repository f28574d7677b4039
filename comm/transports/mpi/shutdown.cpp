#include "comm/transports/mpi/shutdown.h"

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <thread>

#include "comm/transports/mpi/requests.h"

// MPI_Finalize of MPICH over UCX closes each connection with a handshake, then stops answering
// while it waits for the other processes: over TCP, where a handshake takes its time, half of all
// runs hang. Once all ranks have agreed to end nothing is on the way any more, so connections need
// no goodbye: this takes the place of UCX's function and reports every one as closed.
extern "C" void* ucp_disconnect_nb(void*) { return nullptr; }

namespace tw::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 2;
constexpr auto kGrace = 1s;           // for other ranks to come to the end after an error
constexpr auto kLinger = 5ms;         // for last acknowledgements to leave
constexpr auto kOutputLinger = 50ms;  // for the launcher to read the last lines of output
constexpr auto kFinalizeLimit = 10s;  // MPI_Finalize takes milliseconds

void flush() {
  std::cout.flush();
  std::fflush(nullptr);
}

/// The highest code of all ranks, by dissemination, which makes it a barrier as well.
/// False when some rank has not come by the deadline.
bool run_collectively(int& code, Clock::time_point deadline) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int distance = 1; distance < ranks; distance *= 2) {
    MpiRequests flight;
    const int mine = code;
    int theirs = 0;
    flight.receive(&theirs, sizeof(int), (rank - distance + ranks) % ranks, kTag);
    flight.send_surely(&mine, sizeof(int), (rank + distance) % ranks, kTag);
    if (!flight.wait(deadline)) return false;
    code = std::max(code, theirs);
  }
  return true;
}

/// Lets MPI work for a while.
void linger(Clock::duration time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    int arrived = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(100us);
  }
}

/// MPI_Finalize, but not for ever: an unclean end beats none.
void finalize() {
  std::mutex mutex;
  std::condition_variable changed;
  bool finalized = false;
  std::jthread watch([&] {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, kFinalizeLimit, [&] { return finalized; })) _exit(0);
  });
  MPI_Finalize();
  {
    const std::lock_guard lock(mutex);
    finalized = true;
  }
  changed.notify_one();
}

}  // namespace

bool running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

int finish(int code) {
  if (!running()) return code;
  flush();
  const auto deadline = code == 0 ? Clock::time_point::max() : Clock::now() + kGrace;
  if (!run_collectively(code, deadline) || code != 0) end_all_ranks(code);
  linger(kLinger);
  finalize();
  return 0;
}

void end_all_ranks(int code) {
  // only MPI_Abort brings its code to mpirun reliably: of ranks that simply exit with a code, hydra
  // kills the slower ones and may report that instead
  flush();
  std::this_thread::sleep_for(kOutputLinger);
  // what it would print has been said better
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}

}  // namespace tw::mpi
