// OptionTable: each option is declared once; parsing of flags and JSON, defaults, help, the
// JSON of the present values and the errors for unknown names follow from the declaration.
// Subcommand: one of several commands of a program, such as `bench comm`, with its options.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tw {

class Settings;

using Json = nlohmann::ordered_json;

/// Thrown for --help, --version, --list and --describe: the text to print before the program exits
/// with code 0.
struct HelpText {
  std::string text;
};

/// What another value of an option means for a run that goes on from a checkpoint.
enum class Effect {
  none,        ///< nothing: every step computes the same
  weights,     ///< other weights: prints a notice
  experiment,  ///< the same, and another experiment: it goes on only in a folder of its own
  essential    ///< the checkpoint cannot be used: UserError
};

/// Where an option differs from others.
enum OptionTrait : unsigned {
  kUnsaved = 1,  ///< it is for one call: config.json lacks it
  kUnswept = 2,  ///< a sweep cannot vary it
  kLocal = 4,    ///< it names a file or folder, which may differ between ranks
};

/// What is to be said of an option besides its name, target and help.
struct OptionRules {
  static constexpr double kMost = 1e9;

  double least = 0, most = kMost;          ///< of a number, or of each number of a list (not NaN)
  bool excludes_least = false;             ///< it must be more than `least`
  std::vector<std::string> choices{};      ///< all values; empty: any, or all words of an enum
  std::vector<std::string> suggestions{};  ///< values that completions offer; others are valid, too
  std::string none{};                      ///< the word for std::nullopt, in place of a value
  std::string empty_list{};                ///< a word for the empty list
  std::optional<Effect> effect{};          ///< without it, that of the group
  unsigned traits = 0;                     ///< a sum of OptionTrait
  char letter = 0;                         ///< of a short flag: -b
  bool size_units = false;                 ///< a size with a unit: 4K, 64M, 1G (powers of 1024)
  /// Its value, once set, is the default of this setting; set_text() also replaces a value that is
  /// set already. For tables with add_settings().
  std::string default_of{};
  bool* given = nullptr;  ///< set_text() makes it true
  bool required = false;  ///< UserError when the command line lacks it
  /// It takes an argument without a flag as its value. Several such options take the arguments in
  /// order; a list of texts takes the rest.
  bool positional = false;
};

/// An enum of which flags and files use words, one for each value, in order:
/// `constexpr auto words(E) { return std::array{"first", "second"}; }`.
template <class E>
concept Worded = std::is_enum_v<E> && requires(E value) {
  words(value);
};
template <Worded E>
constexpr const char* word(E value) {
  return words(value)[static_cast<size_t>(value)];
}

/// The JSON key of a flag: batch_size for batch-size.
std::string json_key(std::string name);

class OptionTable {
 public:
  static constexpr std::string_view kDescribe = "--describe";

  /// Begins a part of the help: its heading, and the effect of the options that are declared next
  /// and say none.
  void group(std::string heading, Effect effect = Effect::weights) {
    group_ = std::move(heading);
    effect_ = effect;
  }
  /// Declares flag `--name` (JSON key: the same with _ for -) that sets `target`; its present
  /// value is the default. T: bool, int64_t, double, std::string, a vector of numbers (flag value
  /// `1,2,3`), an enum with words, or std::optional of a number, a vector or an enum.
  template <class T>
  void add(std::string name, T& target, std::string help, OptionRules rules = {});
  /// A list of texts of any bytes, to which each argument without a flag is added.
  void add(std::string name, std::vector<std::string>& target, std::string help, OptionRules rules);
  template <Worded E>
  void add(std::string name, E& target, std::string help, OptionRules rules = {}) {
    const auto all = words(target);
    const std::function<size_t()> get = [&target] { return static_cast<size_t>(target); };
    const std::function<void(size_t)> set = [&target](size_t i) { target = static_cast<E>(i); };
    add_words(std::move(name), std::move(help), std::move(rules),
              std::vector<std::string>(all.begin(), all.end()), get, set);
  }
  template <Worded E>
  void add(std::string name, std::optional<E>& target, std::string help, OptionRules rules) {
    std::vector<std::string> all{rules.none};
    for (const char* one : words(E{})) all.emplace_back(one);
    const std::function<size_t()> get = [&target] {
      return target ? static_cast<size_t>(*target) + 1 : 0;
    };
    const std::function<void(size_t)> set = [&target](size_t i) {
      target = i > 0 ? std::optional(static_cast<E>(i - 1)) : std::nullopt;
    };
    add_words(std::move(name), std::move(help), std::move(rules), all, get, set);
  }
  /// Declares the repeatable flag `--set NAME.KEY=VALUE`, which changes `settings`.
  void add_settings(Settings& settings);
  /// Declares flag `--name`, a short form of `--set KEY=VALUE`. After add_settings().
  void add_short_form(std::string name, const std::string& key, std::string help,
                      OptionRules rules);

  /// The JSON keys of the options with one of these traits, in the order of declaration.
  std::vector<std::string> keys(unsigned traits) const;
  /// The effect of the option with this JSON key; Effect::experiment for any other key, such as
  /// that of a setting.
  Effect effect_of(const std::string& key) const;

  /// All options with group, help, default and values, for manual pages and completions. The flag
  /// --describe, which help does not show, prints it.
  Json describe(const std::string& description) const;

  /// The flags of a command line with their values as text; those of --set last, in the order
  /// given.
  using Given = std::vector<std::pair<std::string, std::string>>;
  /// Parses argv; throws HelpText on --help and --version. UserError names the nearest known flag.
  /// A flag of a bool may be given a value: --nesterov=false.
  Given parse(int argc, char** argv, const std::string& description) const;
  /// Parses argv and sets every option that it names.
  void parse_and_set(int argc, char** argv, const std::string& description);

  /// Sets one option from the text of its flag. UserError when the text is not a value of its type
  /// or range; the option then keeps its value.
  void set_text(const std::string& name, const std::string& text);
  /// Sets every key of a JSON object; UserError starts with `source`, names an unknown key and its
  /// nearest neighbour.
  void set_json(const Json& object, const std::string& source);
  /// The options that set_text() or set_json() have set to another value than the default.
  std::vector<std::string> changed() const;
  /// Whether set_text() or set_json() has set the option.
  bool is_set(const std::string& name) const;
  /// The options with their present values, but those with one of the traits `without`.
  Json json(unsigned without = 0) const;
  /// The same with the settings.
  Json json_with_settings(unsigned without = 0) const;

 private:
  struct Option {
    std::string group, name, help;
    OptionRules rules;
    std::string kind{}, default_text{};                        // the expected value in words
    std::vector<std::pair<std::string, std::string>> words{};  // with their values as JSON text
    std::function<bool(const Json&)> fits{};
    std::function<void(const Json&)> set{};
    std::function<Json(const std::string&)> parse{};
    std::function<Json()> get{};
    bool is_flag = false, is_list = false, is_set = false;
    /// Whether the rules allow the number, or each number of a list.
    bool in_range(const Json& value) const;
    /// The present value as a file has it: a number, text or list, or the word for none.
    Json saved() const;
    bool has(unsigned traits) const { return (rules.traits & traits) != 0; }
  };
  /// An option whose values are texts, unless the caller replaces its functions.
  Option& declare(std::string name, std::string help, OptionRules rules);
  /// An option whose values are these words; `get` and `set` use their numbers.
  void add_words(std::string name, std::string help, OptionRules rules,
                 const std::vector<std::string>& all, const std::function<size_t()>& get,
                 const std::function<void(size_t)>& set);
  Option& find(const std::string& name);
  /// Gives an argument without a flag to the option that takes it; false: there is none.
  bool take_positional(const std::string& argument, Given& given) const;
  [[noreturn]] void refuse_extra(const std::string& extra) const;
  /// `; did you mean --model vgg16` of an argument that is a value of a flag; else empty.
  std::string hint_at_flag(const std::string& argument) const;
  void apply(Option& option, const Json& value, const std::string& text, const std::string& source);

  std::string group_, settings_group_;
  Effect effect_ = Effect::weights;  // of the group
  std::vector<Option> options_;
  Settings* settings_ = nullptr;
};

/// `run` is called once the options of `table` are set.
struct Subcommand {
  std::string name, help;
  OptionTable table;
  std::function<void()> run;
};

/// A subcommand with an empty table, and the options for it to set, which `run` gets.
template <class Options>
std::pair<Subcommand, std::shared_ptr<Options>> subcommand(const char* name, const char* help,
                                                           void (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {{.name = name, .help = help, .table = {}, .run = [=] { run(*options); }}, options};
}

/// Sets the options of the subcommand that argv[1] names and returns it. HelpText for --help;
/// UserError for an unknown subcommand, which names the nearest, and for unknown flags and values.
const Subcommand& parse_subcommand(std::vector<Subcommand>& all, int argc, char** argv,
                                   const std::string& description);

}  // namespace tw
