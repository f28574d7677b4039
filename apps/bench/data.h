// `bench data`: what the pipeline of photographs costs beside bare decoding.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

/// Adds the subcommand; it runs when chosen.
void add_bench_data(CLI::App& app);

}  // namespace tw
