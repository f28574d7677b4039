// OptionTable: each option is declared once; parsing of flags and JSON, defaults, help, echo and
// the errors for unknown names all follow from the declaration.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tw {

using Json = nlohmann::ordered_json;

/// Thrown for --help: what to print before ending well.
struct HelpText {
  std::string text;
};

class OptionTable {
 public:
  /// Declares flag `--name` (JSON key: the same with _ for -) that sets `target`; its present
  /// value is the default. T: bool, int64_t, double, std::string or a vector of numbers (flag
  /// value `1,2,3`).
  template <class T>
  void add(std::string group, std::string name, T& target, std::string help);
  /// Restricts the option declared last to these values.
  void choices(std::vector<std::string> allowed);
  /// Restricts the number declared last to [least, most] (not NaN).
  void range(double least, double most);

  /// What a command line asked for: flag -> text; each --set in the order given, behind the rest.
  using Given = std::vector<std::pair<std::string, std::string>>;
  /// Parses argv; throws HelpText on --help. UserError names the nearest known flag. A flag of a
  /// bool may be given a value: --nesterov=false.
  Given parse(int argc, char** argv, const std::string& description) const;

  /// Sets one option from the text of its flag; UserError when it is no value of its type or range,
  /// and the option is then what it was.
  void set_text(const std::string& name, const std::string& text);
  /// Sets every key of a JSON object; UserError starts with `place`, names an unknown key and its
  /// nearest neighbour.
  void set_json(const Json& object, const std::string& place);
  /// All options with their present values.
  Json json() const;

 private:
  struct Option {
    std::string group, name, help, default_text;
    const char* kind = "";  // what a value must be, in words
    bool is_flag = false;
    std::vector<std::string> choices;
    std::function<bool(const Json&)> fits;
    std::function<void(const Json&)> set;
    std::function<Json(const std::string&)> parse;
    std::function<Json()> get;
    double least, most;
  };
  Option& find(const std::string& name);
  static void apply(Option& option, const Json& value, const std::string& text,
                    const std::string& place);

  std::vector<Option> options_;
};

}  // namespace tw
