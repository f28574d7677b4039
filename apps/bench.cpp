// bench: measures the parts of the trainer, each beside its bound and its peers.
#include <cstdio>
#include <exception>

#include "apps/support/bench_select.h"
#include "apps/support/bench_step.h"
#include "engine/error.h"

int main(int argc, char** argv) {
  CLI::App app("measures the parts of the trainer");
  app.require_subcommand(1);
  try {
    tw::add_bench_select(app);
    tw::add_bench_step(app);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const tw::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
