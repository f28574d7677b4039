// analyze select: any selector on a vector of the user's own.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

void add_analyze_select(CLI::App& app);

}  // namespace tw
