// analyze: reports the entries that a selector selects from a vector, and the residual.
#include "apps/analyze/subcommands.h"
#include "apps/common/launch.h"

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) {
    std::vector<tw::Subcommand> all{tw::analyze_select(), tw::analyze_theory()};
    tw::parse_subcommand(all, argc, argv,
                         "analyze: the entries that a selector selects, and the residual")
        .run();
    return 0;
  });
}
