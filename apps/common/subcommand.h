// Subcommand: one of several commands of a program, such as `bench comm`, with its options.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/common/options.h"

namespace tw {

/// `run` is called once the options of `table` are set.
struct Subcommand {
  std::string name, help;
  OptionTable table;
  std::function<void()> run;
};

/// Sets the options of the subcommand that argv[1] names and returns it. HelpText for --help;
/// UserError for an unknown subcommand, which names the nearest, and for unknown flags and values.
const Subcommand& parse_subcommand(std::vector<Subcommand>& all, int argc, char** argv,
                                   const std::string& description);

}  // namespace tw
