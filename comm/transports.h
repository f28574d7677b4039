// The transports: one rank alone, ranks as threads of this process, ranks as MPI processes; and
// NCCL beside one of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace tw {

/// One rank, no wire.
std::unique_ptr<Communicator> make_self_communicator();

/// Runs body(communicator) on `ranks` threads of this process and waits for all. The first
/// exception is rethrown; the other ranks are woken from whatever they wait for.
void run_on_threads(int ranks, const std::function<void(Communicator&)>& body);

/// True when an MPI launcher (mpirun, srun) started this process, also when it started only one.
bool started_by_mpi();

struct MpiOptions {
  size_t block_bytes = size_t{1} << 30;  ///< longer messages travel in blocks: MPI counts in int
  size_t stage_bytes = size_t{4} << 20;  ///< a pinned block, where MPI cannot take a GPU's memory
  bool stage_all = false;                ///< the host's memory goes that way, too
};
/// The world of mpirun; initialises MPI on first use. UserError when built without MPI.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options = {});

/// Ends MPI; call it last and exit with what it returns. Returns `code` at once if MPI was never
/// initialised. Otherwise all ranks end alike, with the highest code of them: 0 returns; anything
/// else ends the process here, and ends ranks that do not come here within a second. Never hangs.
int finish_mpi(int code);

/// What this build or machine lacks for NCCL; empty when it lacks nothing.
std::string what_nccl_lacks();
/// Messages between GPUs, one a rank, over NCCL. `bootstrap` outlives it and is not used beside it:
/// it carries what NCCL must know first, the lengths of messages, and short messages of the host.
/// Null when two ranks share a GPU, which NCCL refuses: `notice` then says so in a line. Waits as
/// long as the bootstrap does. Collective; all ranks get the same.
std::unique_ptr<Communicator> make_nccl_communicator(Context& ctx, Communicator& bootstrap,
                                                     std::string& notice);

/// What the NCCL transport adds from its own file, where NCCL is built.
using NcclTransport = std::unique_ptr<Communicator> (*)(Context&, Communicator&, std::string&);
NcclTransport& nccl_transport();

/// What the MPI transport adds from its own file, where MPI is built.
struct MpiTransport {
  std::unique_ptr<Communicator> (*make)(const MpiOptions& options) = nullptr;
  int (*finish)(int code) = nullptr;
};
MpiTransport& mpi_transport();

}  // namespace tw
