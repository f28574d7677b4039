// bench: measures the parts of the trainer, each beside its bound and its peers.
#include <CLI/CLI.hpp>

#include "apps/bench/comm.h"
#include "apps/bench/data.h"
#include "apps/bench/select.h"
#include "apps/bench/step.h"
#include "apps/common/launch.h"

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator& world) {
    CLI::App app("measures the parts of the trainer");
    app.require_subcommand(1);
    tw::add_bench_comm(app, world);
    tw::add_bench_data(app);
    tw::add_bench_select(app);
    tw::add_bench_step(app);
    return tw::run_options(app, argc, argv, world);
  });
}
