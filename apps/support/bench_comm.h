// `bench comm`: what collectives take, on the transport and link at hand.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

/// Adds the subcommand; when chosen it runs and leaves its exit code in `code`.
void add_bench_comm(CLI::App& app, int& code);

}  // namespace tw
