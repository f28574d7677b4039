// `bench select`: what a step of selection with error feedback costs.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

/// Adds the subcommand; it runs when chosen.
void add_bench_select(CLI::App& app);

}  // namespace tw
