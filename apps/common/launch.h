// Start and end of a program: ranks, signals, errors and exit codes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace tw {

/// Turns true when SIGTERM or SIGINT arrives. Handles these signals from the first call on; a
/// second signal ends the process at once.
const std::atomic<bool>& stop_signal();

/// Runs `body` with the communicator of this process (MPI's under mpirun, else a single rank) and
/// returns the exit code of main: what `body` returns, 0 after --help or --version, 1 for a fault,
/// 2 for a UserError. Errors are one line on stderr. An error common to all ranks is printed once,
/// by rank 0.
int run_program(const std::function<int(Communicator&)>& body);

}  // namespace tw
