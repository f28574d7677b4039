// analyze theory: what Top-k leaves behind, in closed form and measured.
#pragma once

#include <CLI/CLI.hpp>

namespace tw {

void add_analyze_theory(CLI::App& app);

}  // namespace tw
