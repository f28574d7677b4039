// The transports: a single rank, ranks as threads of this process, ranks as MPI processes, and
// NCCL, which needs another transport as its bootstrap.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "engine/core/registry.h"

namespace tw {

/// The most seconds of a timeout: the clock cannot hold much more.
inline constexpr double kLongestTimeout = 1e9;

/// One rank, no messages.
std::unique_ptr<Communicator> make_self_communicator();

/// Runs body(communicator) on `ranks` threads of this process and waits for all. An exception on
/// one rank ends the waits of the others; the first one is rethrown.
void run_on_threads(int ranks, const std::function<void(Communicator&)>& body);

/// Whether an MPI launcher (mpirun, srun) started this process, also for a single process.
bool started_by_mpi();
/// The MPI library in use, as it names itself: `MPICH Version: 4.0.2`. Empty without MPI.
std::string mpi_library();
/// The communicator of all processes of mpirun. The first call initialises MPI. UserError when
/// built without MPI, and after finish_mpi().
std::unique_ptr<Communicator> make_mpi_communicator();
/// Ends MPI; call it last and exit with what it returns. Returns `code` at once if MPI was never
/// initialised. Otherwise waits for all ranks and takes the highest of their codes: returns if it
/// is 0, else ends all ranks with it. A rank whose own code is not 0 waits three seconds at most,
/// then ends all ranks; a rank with code 0 waits `seconds` (0: without limit), then ends all ranks
/// with code 1 and a line on stderr. `error` is the line of a rank that has failed: the lowest of
/// the ranks that bring the same text prints it on stderr.
int finish_mpi(int code, const std::string& error = "", double seconds = 0);
/// Waits until every rank of mpirun calls this, at most `seconds` (0: without limit), and returns
/// whether all did; true without MPI. Independent of the messages of communicators, in which other
/// ranks may still wait.
bool meet_mpi(double seconds);

/// What this build or machine lacks for NCCL; empty when nothing is missing.
std::string what_nccl_lacks();
/// Messages between GPUs, one per rank, over NCCL. `bootstrap` carries NCCL's id, the lengths of
/// messages, and short host messages; it must outlive the result and have no other user. The
/// timeout is that of the bootstrap. Returns null when two ranks share a GPU, which NCCL does not
/// allow; `notice` then says so in one line. Collective; the result is the same on all ranks.
std::unique_ptr<Communicator> make_nccl_communicator(Context& ctx, Communicator& bootstrap,
                                                     std::string& notice);

/// An optional transport, registered by its own folder. Members that it does not need are null.
struct Transport {
  std::unique_ptr<Communicator> (*start)() = nullptr;
  int (*finish)(int code, const std::string& error, double seconds) = nullptr;
  bool (*meet)(double seconds) = nullptr;
  std::string (*library)() = nullptr;
  std::unique_ptr<Communicator> (*start_on)(Context& ctx, Communicator& bootstrap,
                                            std::string& notice) = nullptr;
};
/// `mpi` and `nccl`, where they are built.
Registry<Transport>& optional_transports();
/// The MPI transport among `transports`; UserError when it was not built.
const Transport& mpi_among(const Registry<Transport>& transports);

}  // namespace tw
