// analyze: what selection does to a vector: one of the user's, or one that theory speaks of.
#include <CLI/CLI.hpp>

#include "apps/analyze/select.h"
#include "apps/analyze/theory.h"
#include "apps/common/launch.h"

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator& world) {
    CLI::App app("shows what selection keeps of a vector and what it leaves behind");
    app.require_subcommand(1);
    tw::add_analyze_select(app);
    tw::add_analyze_theory(app);
    return tw::run_options(app, argc, argv, world);
  });
}
