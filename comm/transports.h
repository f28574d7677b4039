// The transports: one rank alone, ranks as threads of this process, ranks as MPI processes.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace tw {

/// One rank, no wire.
std::unique_ptr<Communicator> make_self_communicator();

/// Runs body(communicator) on `ranks` threads of this process and waits for all. The first
/// exception is rethrown; the other ranks are woken from whatever they wait for.
void run_on_threads(int ranks, const std::function<void(Communicator&)>& body);

/// True when this process was started by an MPI launcher (mpirun) with more than the program alone.
bool started_by_mpi();
/// The world of mpirun; initialises MPI on first use. UserError when built without MPI.
std::unique_ptr<Communicator> make_mpi_communicator();
/// Ends MPI so that the process can exit with `code`; does nothing if it was never initialised.
/// Never hangs, also not over TCP. Call it last.
void finish_mpi(int code);

}  // namespace tw
