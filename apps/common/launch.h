// Start and end of a program: ranks, signals, errors and exit codes.
#pragma once

#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace tw {

/// Gives the streams of this process 32 connections to the GPU, unless the environment sets another
/// number. Ranks that are threads have a stream each; with CUDA's default of 8 connections some
/// streams would wait for each other. To be called before CUDA and any thread starts. run_program()
/// calls it; tests without run_program() call it first in main.
inline void set_gpu_connections() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

/// Turns true when SIGTERM, SIGINT, SIGHUP (unless nohup ignores it) or SIGPIPE arrives. Handles
/// these signals from the first call on; a second one, other than SIGPIPE, ends the process at
/// once.
const std::atomic<bool>& stop_signal();

/// Leaves SIGINT, SIGTERM and SIGHUP to a new thread. This one and those that it starts later block
/// them: on x86, a handler may damage the heap during oneDNN's matrix products (its issue 4845).
void keep_signals_from_computing();

/// The file of this program; empty if unknown.
std::string program_path();

/// The line that run_program prints for an error: its text, with control characters as \xNN, since
/// names of the user and texts of other ranks may hold any.
std::string error_line(const std::exception& error);

/// Runs `body` with the communicator of this process (MPI's under mpirun, else a single rank) and
/// returns the exit code of main: what `body` returns, 0 after --help or --version, 1 for a fault
/// or if standard output cannot be written, 2 for a UserError, 4 for a CollectiveFault. Errors are
/// one line on stderr. An error common to several ranks is printed once, by the lowest of them.
/// With the `argv` of main (or null), before anything else: unless the environment says how long
/// OpenMP's threads spin, sets a short time and starts the program again.
int run_program(char** argv, const std::function<int(Communicator&)>& body);

/// UserError if ranks are asked for in two ways (--workers under mpirun), or if the launcher
/// started several processes that do not find each other.
void check_ranks(const Communicator& world, int64_t workers);

}  // namespace tw
