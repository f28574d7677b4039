#include "apps/common/subcommand.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/version.h"
#include "engine/core/error.h"
#include "engine/core/registry.h"

namespace tw {

const Subcommand& parse_subcommand(std::vector<Subcommand>& all, int argc, char** argv,
                                   const std::string& description) {
  std::string help =
      fmt::format("{}\n\nUsage: {} SUBCOMMAND [OPTIONS]\n\nSubcommands:\n", description, argv[0]);
  std::vector<std::string> known;
  for (const Subcommand& one : all) {
    help += fmt::format("  {:<10} {}\n", one.name, one.help);
    known.push_back(one.name);
  }
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h")
    throw HelpText{
        help + "\nSUBCOMMAND --help lists its options, --version the versions of this build.\n"};
  if (first == "--version") throw HelpText{version_text()};
  if (first == OptionTable::kDescribe) {
    Json described = {{"description", description}, {"subcommands", Json::array()}};
    for (const Subcommand& one : all) {
      described["subcommands"].push_back(one.table.describe(one.help));
      described["subcommands"].back()["name"] = one.name;
    }
    throw HelpText{described.dump(1) + "\n"};
  }
  check(!first.empty() && !first.starts_with("-"),
        "[options] the subcommand is missing; expected one of: {}", fmt::join(known, ", "));
  const auto chosen = std::ranges::find(all, first, &Subcommand::name);
  if (chosen == all.end()) throw UserError(unknown_name("subcommand", first, known));
  std::string program = fmt::format("{} {}", argv[0], first);
  std::vector<char*> arguments(argv + 1, argv + argc);
  arguments.front() = program.data();
  chosen->table.parse_and_set(argc - 1, arguments.data(), chosen->help);
  return *chosen;
}

}  // namespace tw
