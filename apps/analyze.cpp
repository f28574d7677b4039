// analyze: what selection does to a vector: one of the user's, or one that theory speaks of.
#include "apps/support/analyze_select.h"
#include "apps/support/analyze_theory.h"
#include "apps/support/launch.h"

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator&) {
    CLI::App app("shows what selection keeps of a vector and what it leaves behind");
    app.require_subcommand(1);
    tw::add_analyze_select(app);
    tw::add_analyze_theory(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    return 0;
  });
}
