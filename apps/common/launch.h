// Starting ranks and ending them all alike.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace tw {

/// Turns true when SIGTERM or SIGINT arrives after the first call; a second signal ends the
/// process at once.
const std::atomic<bool>& stop_signal();

/// How main ends: runs `body` with the communicator of this process (MPI's under mpirun, else one
/// rank) and turns what it throws into one line on stderr and an exit code: 0, 1 for a fault, 2
/// for a user's mistake. Under mpirun rank 0 speaks for errors that all ranks share.
int run_program(const std::function<int(Communicator&)>& body);

}  // namespace tw
