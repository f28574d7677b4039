// `bench comm`: what collectives take, on the transport and link at hand.
#pragma once

#include <CLI/CLI.hpp>

#include "comm/communicator.h"

namespace tw {

/// Adds the subcommand, which runs on the ranks of `world` or on threads.
void add_bench_comm(CLI::App& app, Communicator& world);

}  // namespace tw
