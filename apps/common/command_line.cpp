// OptionTable on the command line: flags, subcommands, --help, --describe and the errors for
// unknown flags.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/console.h"
#include "apps/common/options.h"
#include "apps/common/version.h"
#include "engine/core/error.h"
#include "engine/core/registry.h"
#include "engine/core/settings.h"
#include "engine/io/file.h"

namespace tw {

namespace {

bool has(const OptionTable::Given& given, const std::string& name) {
  return std::ranges::find(given, name, &OptionTable::Given::value_type::first) != given.end();
}

}  // namespace

OptionTable::Given OptionTable::parse(int argc, char** argv, const std::string& description) const {
  if (argc == 2 && std::string_view(argv[1]) == kDescribe)
    throw HelpText{describe(description).dump(1) + "\n"};
  const auto usual_form = [](const Option& option) {
    if (!option.rules.positional) return "--" + option.name;
    std::string upper = option.name;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return upper;
  };
  std::string usage = argv[0];
  for (const Option& option : options_)
    if (option.rules.positional)
      usage += fmt::format(fmt::runtime(option.rules.required ? " {}{}" : " [{}{}]"),
                           usual_form(option), option.is_list ? "..." : "");
  CLI::App app(description, usage);
  app.allow_extras();
  app.set_version_flag("--version", version_text, "Print the versions of this build and exit");
  app.footer(
      "Exit code: 0 finished, 1 a fault, 2 wrong options, files or data, 3 stopped by a signal "
      "with a checkpoint, 4 numbers that are not finite");
  constexpr size_t kHelpColumn = 34;
  app.get_formatter()->column_width(kHelpColumn);
  Given given;
  for (const Option& option : options_) {
    const std::string letter = option.rules.letter ? fmt::format("-{},", option.rules.letter) : "";
    CLI::Option* flag = app.add_option_function<std::string>(
        fmt::format("{}--{}", letter, option.name),
        [&given, &option](const std::string& text) { given.emplace_back(option.name, text); },
        option.help);
    flag->type_name("");
    flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // a later flag beats an earlier
    if (option.is_flag)
      flag->expected(0);  // alone: "true"
    else
      flag->default_str(option.default_text);
    if (!option.rules.choices.empty())
      flag->description(fmt::format("{} ({})", option.help, fmt::join(option.rules.choices, ", ")));
    if (option.rules.required) flag->description(option.help + " (required)");
    flag->group(option.group);
  }
  if (settings_ != nullptr)
    app.add_option_function<std::vector<std::string>>(
           "--set",
           [&given](const std::vector<std::string>& values) {
             for (const std::string& value : values) given.emplace_back("set", value);
           },
           "a setting that train --list names, e.g. gaussiank.refine=paper; may be repeated")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("NAME.KEY=VALUE")
        ->group(settings_group_);

  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto end_of_flags = std::ranges::find(words, "--");
  // the last one first, as CLI11 wants them
  std::vector<std::string> arguments(std::make_reverse_iterator(end_of_flags), words.rend());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    throw HelpText{wrap(app.help(), output_columns(), kHelpColumn)};
  } catch (const CLI::CallForVersion&) {
    throw HelpText{version_text()};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--lr: At Most 1 required but received 2"
    fail("[options] {} needs one value", text.substr(0, text.find(':')));
  } catch (const CLI::ParseError& error) {
    fail("[options] {}", error.what());
  }
  for (const auto& [name, text] : given)
    check(!text.starts_with("--"), "[options] --{} needs one value; found {}", name, text);
  for (const std::string& extra : app.remaining())
    if (extra.starts_with("-") || !take_positional(extra, given)) refuse_extra(extra);
  const bool takes_arguments =
      std::ranges::any_of(options_, [](const Option& option) { return option.rules.positional; });
  for (auto it = end_of_flags; it != words.end(); ++it)
    check(it == end_of_flags ? takes_arguments : take_positional(*it, given),
          "[options] unexpected argument \"{}\"{}", *it, hint_at_flag(*it));
  for (const Option& option : options_)
    check(!option.rules.required || has(given, option.name),
          "[options] {} is missing; --help lists all", usual_form(option));
  return given;
}

std::string OptionTable::hint_at_flag(const std::string& argument) const {
  std::error_code ignored;
  for (const Option& option : options_)
    if ((option.name == "config" && argument.ends_with(".json")) ||
        (option.name == "data-dir" && std::filesystem::is_directory(argument, ignored)) ||
        std::ranges::find(option.rules.suggestions, argument) != option.rules.suggestions.end())
      return fmt::format("; did you mean --{} {}", option.name, shell_word(argument));
  return "";
}

bool OptionTable::take_positional(const std::string& argument, Given& given) const {
  const auto takes = std::ranges::find_if(options_, [&](const Option& option) {
    return option.rules.positional && (option.is_list || !has(given, option.name));
  });
  if (takes == options_.end()) return false;
  given.emplace_back(takes->name, argument);
  return true;
}

void OptionTable::refuse_extra(const std::string& extra) const {
  const std::string flag = extra.substr(0, extra.find('='));
  const size_t name = flag.find_first_not_of('-');
  check(extra.starts_with("-") && name != std::string::npos,
        "[options] unexpected argument \"{}\"{}", extra, hint_at_flag(extra));
  const auto is_workers = [](const Option& option) { return option.name == "workers"; };
  check(
      (flag != "-n" && flag != "-np" && flag != "--np" && flag != "--ranks") ||
          std::ranges::none_of(options_, is_workers),
      "[options] unknown flag {}; --workers N starts N ranks as threads, mpirun -n N as processes",
      extra);
  std::vector<std::string> known{"help", "version"};
  if (settings_ != nullptr) known.emplace_back("set");
  for (const Option& option : options_) known.push_back(option.name);
  const std::string near = nearest(flag.substr(name), known);
  fail("[options] unknown flag {}{}; --help lists all", extra,
       near.empty() ? "" : fmt::format("; nearest is --{}", near));
}

void OptionTable::parse_and_set(int argc, char** argv, const std::string& description) {
  for (const auto& [name, text] : parse(argc, argv, description)) set_text(name, text);
}

Json OptionTable::describe(const std::string& description) const {
  std::vector<Option> options = options_;
  if (settings_ != nullptr) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : settings_->values()) {
      const std::vector<std::string>& choices = settings_->choices(key);
      if (choices.empty()) keys.push_back(key + "=");
      for (const std::string& choice : choices) keys.push_back(key + "=" + choice);
    }
    options.push_back({.group = settings_group_,
                       .name = "set",
                       .help = "a setting that train --list names; may be repeated",
                       .rules = {.suggestions = std::move(keys)},
                       .kind = "NAME.KEY=VALUE"});
  }
  Json all = Json::array();
  for (const Option& option : options) {
    Json one = {{"group", option.group}, {"name", option.name}, {"help", option.help}};
    if (option.rules.letter) one["letter"] = std::string(1, option.rules.letter);
    one["takes_value"] = !option.is_flag;
    one["kind"] = option.kind;
    one["default"] = option.default_text;
    one["choices"] = option.rules.choices;
    one["suggestions"] = option.rules.suggestions;
    one["required"] = option.rules.required;
    one["positional"] = option.rules.positional;
    all.push_back(std::move(one));
  }
  return {{"description", description}, {"build", provenance_json()}, {"options", std::move(all)}};
}

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
    Json described = {
        {"description", description}, {"build", provenance_json()}, {"subcommands", Json::array()}};
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
