#include "comm/transports/mpi/shutdown.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "comm/transports/deadline.h"
#include "comm/transports/mpi/mpi_c.h"
#include "comm/transports/mpi/requests.h"
#include "engine/core/error.h"

namespace tw::mpi {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr int kFarewellTag = 2, kMeetTag = 3;
constexpr Seconds kGrace{3};          // for other ranks to reach the end after an error
constexpr auto kLinger = 5ms;         // for last acknowledgements to leave
constexpr auto kOutputLinger = 50ms;  // for the launcher to read the last lines of output
constexpr auto kFinalizeLimit = 10s;  // MPI_Finalize and MPI_Abort take milliseconds

void flush() {
  std::cout.flush();
  std::fflush(nullptr);
}

int this_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int all_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// What a rank brings to the end.
struct Ending {
  int64_t code = -1;   ///< -1: not known yet
  uint64_t error = 0;  ///< hash of the text; 0: none
};

/// Collects the endings of all ranks, by dissemination: also a barrier. Returns a rank that has not
/// answered within `time`.
std::optional<int> exchange_endings(std::vector<Ending>& all, Seconds time,
                                    int tag = kFarewellTag) {
  const int rank = this_rank(), ranks = static_cast<int>(all.size());
  std::vector<Ending> theirs(all.size());
  WaitLimit limit(time);
  for (int distance = 1; distance < ranks; distance *= 2) {
    MpiRequests flight;
    const std::vector<Ending> mine = all;
    const size_t bytes = mine.size() * sizeof(Ending);
    const int from = (rank - distance + ranks) % ranks, to = (rank + distance) % ranks;
    flight.receive(theirs.data(), bytes, from, tag);
    flight.send_surely(mine.data(), bytes, to, tag);
    if (!flight.wait(limit)) return flight.received() ? to : from;
    for (size_t r = 0; r < all.size(); ++r)
      if (theirs[r].code >= 0) all[r] = theirs[r];
  }
  return std::nullopt;
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

}  // namespace

bool running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

int finish(int code, const std::string& error, double seconds) {
  if (!running()) return code;
  flush();
  const auto rank = static_cast<size_t>(this_rank());
  const auto print = [&] {
    if (!error.empty()) write_error_line(error);
  };
  if (rank == 0) print();
  const Seconds time = code == 0 ? Seconds(seconds) : kGrace;
  std::vector<Ending> all(static_cast<size_t>(all_ranks()));
  all[rank] = {code, error.empty() ? 0 : std::hash<std::string>{}(error)};
  std::optional<int> missing = exchange_endings(all, time);
  const auto before = std::span(all).first(rank);
  if (std::ranges::find(before, all[rank].error, &Ending::error) == before.end() && rank > 0)
    print();
  for (const Ending& one : all) code = std::max(code, static_cast<int>(one.code));
  // no rank ends the others before they have printed
  if (!missing) missing = exchange_endings(all, time);
  if (missing && code == 0) {
    code = 1;
    write_error_line(fmt::format("error: [mpi] rank {} has waited {} s at the end for rank {}",
                                 rank, seconds, *missing));
  }
  // one rank needs no MPI_Abort, of which Open MPI tells in several lines
  if (all.size() > 1 && (missing || code != 0)) end_all_ranks(code);
  linger(kLinger);
  finalize(code);
  return code;
}

bool meet(double seconds) {
  if (!running()) return true;
  std::vector<Ending> all(static_cast<size_t>(all_ranks()));
  return !exchange_endings(all, Seconds(seconds), kMeetTag);
}

void end_all_ranks(int code) {
  // only MPI_Abort reliably passes its code to mpirun: when ranks simply exit, hydra kills the
  // slower ones and may report that instead
  flush();
  std::this_thread::sleep_for(kOutputLinger);
  // MPI_Abort prints a message of its own; the error has been reported
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  // it asks the launcher, which may be beyond a network that is down
  run_with_deadline(
      kFinalizeLimit, [code] { MPI_Abort(MPI_COMM_WORLD, code); }, [code] { _exit(code); });
  _exit(code);
}

}  // namespace tw::mpi
