// bench: measures the parts of the trainer, each beside its bound and its peers.
#include <cstdio>
#include <exception>
#include <sstream>

#include "apps/support/bench_comm.h"
#include "apps/support/bench_data.h"
#include "apps/support/bench_select.h"
#include "apps/support/bench_step.h"
#include "apps/support/launch.h"
#include "engine/error.h"

int main(int argc, char** argv) {
  CLI::App app("measures the parts of the trainer");
  app.require_subcommand(1);
  int code = 0;
  try {
    tw::add_bench_comm(app, code);
    tw::add_bench_data(app);
    tw::add_bench_select(app);
    tw::add_bench_step(app);
    app.parse(argc, argv);
    return code;
  } catch (const CLI::ParseError& error) {
    // said once, also under mpirun
    return tw::run_program([&](tw::Communicator& world) {
      std::ostringstream help, mistake;
      const int parsed = app.exit(error, help, mistake);
      if (world.rank() == 0) fmt::print("{}", help.str());
      if (world.rank() == 0) fmt::print(stderr, "{}", mistake.str());
      return parsed == 0 ? 0 : 2;
    });
  } catch (const tw::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
