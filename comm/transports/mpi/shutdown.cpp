#include "comm/transports/mpi/shutdown.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <thread>

#include "comm/transports/deadline.h"
#include "comm/transports/mpi/mpi_c.h"
#include "comm/transports/mpi/requests.h"

namespace tw::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int kFarewellTag = 2;
constexpr auto kGrace = 1s;           // for other ranks to reach the end after an error
constexpr auto kLinger = 5ms;         // for last acknowledgements to leave
constexpr auto kOutputLinger = 50ms;  // for the launcher to read the last lines of output
constexpr auto kFinalizeLimit = 10s;  // MPI_Finalize takes milliseconds

void flush() {
  std::cout.flush();
  std::fflush(nullptr);
}

/// The highest code of all ranks, by dissemination: also a barrier. False when a rank has not
/// called it by the deadline.
bool exchange_codes(int& code, Clock::time_point deadline) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int distance = 1; distance < ranks; distance *= 2) {
    MpiRequests flight;
    const int mine = code;
    int theirs = 0;
    flight.receive(&theirs, sizeof(int), (rank - distance + ranks) % ranks, kFarewellTag);
    flight.send_surely(&mine, sizeof(int), (rank + distance) % ranks, kFarewellTag);
    if (!flight.wait(deadline)) return false;
    code = std::max(code, theirs);
  }
  return true;
}

/// Lets MPI make progress for `time`.
void linger(Clock::duration time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    int arrived = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kFarewellTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(100us);
  }
}

/// MPI_Finalize, on this thread, as MPI requires. Ends the process when it hangs: all ranks have
/// ended their work by then.
void finalize(int code) {
  run_with_deadline(
      kFinalizeLimit, [] { MPI_Finalize(); }, [code] { _exit(code); });
}

bool alone() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks == 1;
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
  const bool agreed = exchange_codes(code, deadline);
  // one rank needs no MPI_Abort, of which Open MPI tells in several lines
  if (!alone() && (!agreed || code != 0)) end_all_ranks(code);
  linger(kLinger);
  finalize(code);
  return code;
}

void end_all_ranks(int code) {
  // only MPI_Abort reliably passes its code to mpirun: when ranks simply exit, hydra kills the
  // slower ones and may report that instead
  flush();
  std::this_thread::sleep_for(kOutputLinger);
  // MPI_Abort prints a message of its own; the error has been reported
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}

}  // namespace tw::mpi
