// bench: measures parts of the trainer and compares each with a bound or another implementation.
#include "apps/bench/comm.h"
#include "apps/bench/data.h"
#include "apps/bench/select.h"
#include "apps/bench/step.h"
#include "apps/common/launch.h"

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator& world) {
    std::vector<tw::Subcommand> all{tw::bench_comm(world), tw::bench_data(), tw::bench_select(),
                                    tw::bench_step()};
    tw::parse_subcommand(all, argc, argv, "bench: measures the parts of the trainer").run();
    return 0;
  });
}
