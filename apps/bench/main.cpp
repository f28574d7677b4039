// bench: measures parts of the trainer and compares each with a bound or another implementation.
#include <algorithm>
#include <iterator>

#include "apps/bench/subcommands.h"
#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"

namespace {

/// UserError unless all ranks run the same build with the same options.
void check_same_setup(tw::Communicator& world, const tw::Subcommand& chosen) {
  std::vector<std::string> lines = tw::build_lines();
  lines.push_back("subcommand is " + chosen.name);
  std::ranges::move(tw::option_lines(chosen.table), std::back_inserter(lines));
  tw::check_same_setup(world, lines);
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator& world) {
    std::vector<tw::Subcommand> all{tw::bench_comm(world), tw::bench_data(), tw::bench_encode(),
                                    tw::bench_select(), tw::bench_step()};
    const tw::Subcommand* chosen = nullptr;
    tw::run_collectively(world, [&] {
      chosen = &tw::parse_subcommand(all, argc, argv, "bench: measures the parts of the trainer");
    });
    check_same_setup(world, *chosen);
    chosen->run();
    return 0;
  });
}
