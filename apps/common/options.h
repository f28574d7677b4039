// OptionTable: each option is declared once; parsing of flags and JSON, defaults, help, the
// JSON of the present values and the errors for unknown names follow from the declaration.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
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

/// The effect of a changed option on a run that resumes from a checkpoint.
enum class Effect {
  weights,   ///< changes the weights: prints a notice
  none,      ///< does not change the weights
  essential  ///< the checkpoint cannot be used: UserError
};

/// The JSON key of a flag: batch_size for batch-size.
std::string json_key(std::string name);

class OptionTable {
 public:
  static constexpr double kMost = 1e9;
  static constexpr std::string_view kDescribe = "--describe";

  /// Declares flag `--name` (JSON key: the same with _ for -) that sets `target`; its present
  /// value is the default. T: bool, int64_t, double, std::string or a vector of numbers (flag
  /// value `1,2,3`). A number, or each number of a list, lies in [0, kMost] unless range() or
  /// above() says otherwise.
  template <class T>
  void add(std::string group, std::string name, T& target, std::string help);
  /// Declares the repeatable flag `--set NAME.KEY=VALUE`, which changes `settings`.
  void add_settings(std::string group, Settings& settings);

  // The following change the option that was declared last.

  /// Restricts it to these values.
  void choices(std::vector<std::string> allowed);
  /// Restricts a number, or each number of a list, to [least, most] (not NaN).
  void range(double least, double most = kMost);
  /// Restricts a number, or each number of a list, to (bound, most].
  void above(double bound, double most);
  /// Accepts `word` in place of a number or list. It sets `stand_in`, a value as JSON text; json()
  /// and the help write the word again if range(), which comes first, excludes that value.
  void word(std::string word, std::string stand_in);
  /// Values that completions offer, such as the names of a registry; others are valid, too.
  void suggest(std::vector<std::string> values);
  /// Sets its effect on a resumed run; without this call it is Effect::weights.
  void effect(Effect effect);
  /// Accepts `--old_name` and its JSON key, too, and prints one line on stderr that names the new
  /// one.
  void alias(std::string old_name);
  /// Accepts `-letter`, too.
  void letter(char letter);
  /// Accepts a size with a unit: 4K, 64M, 1G (powers of 1024).
  void size_units();
  /// Makes its value, once set, the default of the setting `key`; set_text() also replaces a value
  /// that is set already. For tables with add_settings().
  void default_of(std::string key);
  /// Makes the option required: UserError when the command line lacks it.
  void required();
  /// Makes the option positional: it takes an argument without a flag as its value. Several such
  /// options take the arguments in order.
  void positional();

  /// The JSON keys of all options with this effect, in the order of declaration.
  std::vector<std::string> keys(Effect effect) const;

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
  /// Prints one line on stderr for each old key of a setting that was set. parse_and_set() calls
  /// it; after parse(), call it once everything is set.
  void print_notices() const;

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
  /// All options with their present values; without the settings.
  Json json() const;
  /// The same with the settings.
  Json json_with_settings() const;

 private:
  struct Option {
    std::string group, name, help, default_text;
    const char* kind = "";  // expected value, in words
    std::string flags{};    // as CLI11 takes them: "-b,--min-bytes"
    std::vector<std::string> aliases{};
    std::string setting{};  // the setting whose default this option sets
    bool is_flag = false, is_required = false, is_positional = false, is_set = false;
    std::vector<std::string> choices{}, suggestions{};
    std::vector<std::pair<std::string, std::string>> words{};  // with their stand-ins
    std::function<bool(const Json&)> fits{};
    std::function<void(const Json&)> set{};
    std::function<Json(const std::string&)> parse{};
    std::function<Json()> get{};
    /// Whether range() or above() allows the value, or each number of a list.
    bool in_range(const Json& value) const;
    /// The present value as a file has it: a number, text or list, or a word.
    Json saved() const;
    double least = 0, most = kMost;
    bool excludes_least = false;
    Effect effect = Effect::weights;
  };
  Option& find(const std::string& name);
  /// The current name of `flag`. For an alias, prints one line on stderr and returns the name it
  /// stands for; else returns `flag`.
  std::string current_name(const std::string& flag) const;
  void add_extra(const std::string& extra, Given& given) const;
  /// `; did you mean --model vgg16` of an argument that is a value of a flag; else empty.
  std::string hint_at_flag(const std::string& argument) const;
  void apply(Option& option, const Json& value, const std::string& text, const std::string& source);

  std::vector<Option> options_;
  std::string settings_group_;
  Settings* settings_ = nullptr;
};

}  // namespace tw
