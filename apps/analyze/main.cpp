// analyze: what selectors and sparsifiers select from vectors, and the residual.
#include "apps/analyze/subcommands.h"
#include "apps/common/launch.h"

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) {
    std::vector<tw::Subcommand> all{tw::analyze_select(), tw::analyze_theory(),
                                    tw::analyze_compressors()};
    tw::parse_subcommand(all, argc, argv,
                         "analyze: what selectors and sparsifiers select, and the residual")
        .run();
    return 0;
  });
}
