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

  /// What a command line asked for: flag -> text, in the order given.
  using Given = std::vector<std::pair<std::string, std::string>>;
  /// Parses argv; throws HelpText on --help. UserError names the nearest known flag.
  Given parse(int argc, char** argv, const std::string& description) const;

  void set_text(const std::string& name, const std::string& text);
  /// Sets every key of a JSON object; UserError names an unknown key and its nearest neighbour.
  void set_json(const Json& object, const std::string& place);
  /// All options with their present values.
  Json json() const;

 private:
  struct Option {
    std::string group, name, help, default_text;
    bool is_flag = false;
    std::vector<std::string> choices;
    std::function<void(const Json&)> set;
    std::function<Json(const std::string&)> parse;
    std::function<Json()> get;
    double least, most;
  };
  Option& find(const std::string& name);
  void apply(Option& option, const Json& value, const std::string& shown);

  std::vector<Option> options_;
};

}  // namespace tw
