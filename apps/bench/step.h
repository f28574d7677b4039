// bench step: images per second of the training step alone (no data loading), one rank.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

void add_bench_step(CLI::App& app);

}  // namespace tw
