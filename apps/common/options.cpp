#include "apps/common/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "comm/launcher.h"
#include "engine/core/error.h"
#include "engine/core/registry.h"

namespace tw {

std::string json_key(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

namespace {

/// The name of type T in error messages.
template <class T>
constexpr const char* kind_of() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "a text in UTF-8";
  return "a list of numbers, like 1,2,3";
}

/// The text of a flag as JSON. Text that is not JSON stays a string; its conversion fails later.
template <class T>
Json from_text(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) return text;
  if constexpr (std::is_same_v<T, double>) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) return number;
    return text;
  }
  const bool list = !std::is_arithmetic_v<T>;
  return Json::parse(list ? "[" + text + "]" : text, nullptr, false);
}

/// A size such as 4K as a number of bytes. Other text stays a string; its conversion fails later.
Json size_from_text(const std::string& text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{}) return text;
  std::string unit = end;
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));

  const std::string_view prefixes = "KMGT";
  int64_t factor = 1;
  if (const size_t power = prefixes.find(unit.substr(0, 1)); !unit.empty() && power != unit.npos) {
    factor <<= 10 * (power + 1);
    unit.erase(0, 1);
  }
  if (unit != "" && unit != "B" && unit != "IB") return text;
  if (__builtin_mul_overflow(size, factor, &size)) return text;
  return size;
}

/// Whether this process prints notices that concern all ranks: rank 0 of a launcher, else always.
bool writes_notes() {
  const std::optional<Launcher> launcher = find_launcher();
  return !launcher || launcher->rank == 0;
}

void note_renamed(const std::string& old_name, const std::string& name) {
  if (writes_notes())
    write_error_line(fmt::format("note: option {} is now called {}", old_name, name));
}

/// JSON strings are UTF-8.
bool is_utf8(const Json& text) {
  try {
    text.dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

/// Converts strictly: no 1.5 for an integer, no text for a number.
template <class T>
bool convert(const Json& value, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return false;
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value.is_number()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string() || !is_utf8(value)) return false;
  } else {
    if (!value.is_array()) return false;
    T list;
    for (const Json& item : value)
      if (!convert(item, list.emplace_back())) return false;
    out = std::move(list);
    return true;
  }
  if constexpr (!std::is_same_v<T, std::string> && std::is_arithmetic_v<T>) out = value.get<T>();
  if constexpr (std::is_same_v<T, std::string>) out = value.get<std::string>();
  return true;
}

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text = value.dump();
  if (value.is_array()) text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

template <class T>
void OptionTable::add(std::string group, std::string name, T& target, std::string help) {
  Option option;
  option.group = std::move(group);
  option.name = std::move(name);
  option.flags = "--" + option.name;
  option.help = std::move(help);
  option.is_flag = std::is_same_v<T, bool>;
  option.parse = from_text<T>;
  option.get = [&target] { return Json(target); };
  option.kind = kind_of<T>();
  option.fits = [](const Json& value) {
    T converted;
    return convert(value, converted);
  };
  option.set = [&target](const Json& value) { convert(value, target); };
  option.default_text = shown(option.get());
  options_.push_back(std::move(option));
}

template void OptionTable::add(std::string, std::string, bool&, std::string);
template void OptionTable::add(std::string, std::string, int64_t&, std::string);
template void OptionTable::add(std::string, std::string, double&, std::string);
template void OptionTable::add(std::string, std::string, std::string&, std::string);
template void OptionTable::add(std::string, std::string, std::vector<int64_t>&, std::string);
template void OptionTable::add(std::string, std::string, std::vector<double>&, std::string);

void OptionTable::add_settings(std::string group, Settings& settings) {
  settings_group_ = std::move(group);
  settings_ = &settings;
}

void OptionTable::choices(std::vector<std::string> allowed) {
  options_.back().choices = std::move(allowed);
}

void OptionTable::suggest(std::vector<std::string> values) {
  options_.back().suggestions = std::move(values);
}

void OptionTable::range(double least, double most) {
  options_.back().least = least;
  options_.back().most = most;
}

void OptionTable::above(double bound, double most) {
  range(bound, most);
  options_.back().excludes_least = true;
}

void OptionTable::word(std::string word, std::string stand_in) {
  Option& option = options_.back();
  option.words.emplace_back(std::move(word), std::move(stand_in));
  option.default_text = shown(option.saved());
}

void OptionTable::alias(std::string old_name) {
  options_.back().aliases.push_back(std::move(old_name));
}

void OptionTable::letter(char letter) {
  options_.back().flags = fmt::format("-{},{}", letter, options_.back().flags);
}

void OptionTable::size_units() {
  options_.back().parse = size_from_text;
  options_.back().kind = "a size in bytes, like 4K or 64M";
}

void OptionTable::default_of(std::string key) { options_.back().setting = std::move(key); }

void OptionTable::required() { options_.back().is_required = true; }

void OptionTable::positional() { options_.back().is_positional = true; }

void OptionTable::effect(Effect effect) { options_.back().effect = effect; }

std::vector<std::string> OptionTable::keys(Effect effect) const {
  std::vector<std::string> keys;
  for (const Option& option : options_)
    if (option.effect == effect) keys.push_back(json_key(option.name));
  return keys;
}

void OptionTable::print_notices() const {
  if (settings_ == nullptr || !writes_notes()) return;
  for (const std::string& notice : settings_->notices()) write_error_line("note: " + notice);
}

std::string OptionTable::current_name(const std::string& flag) const {
  for (const Option& option : options_)
    for (const std::string& old_name : option.aliases)
      if (flag == old_name) {
        note_renamed(old_name, option.name);
        return option.name;
      }
  return flag;
}

OptionTable::Option& OptionTable::find(const std::string& name) {
  const auto it = std::ranges::find(options_, name, &Option::name);
  check<std::logic_error>(it != options_.end(), "[options] no option {}", name);
  return *it;
}

bool OptionTable::Option::in_range(const Json& value) const {
  const Json numbers = value.is_array() ? value : Json::array({value});
  return std::ranges::all_of(numbers, [&](const Json& item) {
    if (!item.is_number()) return true;
    const double number = item.get<double>();
    // both false for NaN
    return (excludes_least ? number > least : number >= least) && number <= most;
  });
}

Json OptionTable::Option::saved() const {
  const Json value = get();
  for (const auto& [word, stand_in] : words)
    if (value == Json::parse(stand_in) && !in_range(value)) return word;
  return value;
}

void OptionTable::apply(Option& option, const Json& value, const std::string& text,
                        const std::string& source) {
  const std::string what = fmt::format("{} {} is {:.200}", source, option.name, text);
  for (const auto& [word, stand_in] : option.words)
    if (value == word) {
      option.set(Json::parse(stand_in));
      option.is_set = true;
      return;
    }
  if (!option.fits(value)) {
    const Json unquoted = value.is_string() ? option.parse(text) : Json();
    if (option.fits(unquoted))
      fail("{} {} is \"{:.200}\" in quotes; expected {}", source, option.name, text,
           unquoted.dump());
    std::string words;
    for (const auto& [word, stand_in] : option.words) words += word + ", ";
    fail("{}; expected {}{}{}", what, words, words.empty() ? "" : "or ", option.kind);
  }
  if (!option.choices.empty())
    check(std::ranges::find(option.choices, value.get<std::string>()) != option.choices.end(),
          "{}; expected one of: {}", what, fmt::join(option.choices, ", "));
  check(option.in_range(value), "{}; expected {}", what,
        fmt::format(fmt::runtime(option.excludes_least ? "more than {}, at most {}" : "{} to {}"),
                    option.least, option.most));
  option.set(value);
  option.is_set = true;
  if (!option.setting.empty()) settings_->set_default(option.setting, shown(value));
}

std::vector<std::string> OptionTable::changed() const {
  std::vector<std::string> names;
  for (const Option& option : options_)
    if (option.is_set && shown(option.saved()) != option.default_text) names.push_back(option.name);
  return names;
}

bool OptionTable::is_set(const std::string& name) const {
  return std::ranges::any_of(options_, [&](const Option& o) { return o.name == name && o.is_set; });
}

void OptionTable::set_text(const std::string& name, const std::string& text) {
  if (name == "set" && settings_ != nullptr) return settings_->set_assignment(text);
  Option& option = find(name);
  Json value = option.parse(text);
  if (value.is_discarded()) value = text;
  apply(option, value, text, "[options]");
  // a flag also comes before a setting of a file, as that of a resumed run
  if (!option.setting.empty() && settings_->was_set(option.setting))
    settings_->set(option.setting, text);
}

void OptionTable::set_json(const Json& object, const std::string& source) {
  check(object.is_object(), "{}: not a JSON object", source);
  for (const auto& [key, value] : object.items()) {
    const auto matches = [&key = key](const std::string& name) { return json_key(name) == key; };
    const auto it = std::ranges::find_if(options_, [&](const Option& option) {
      return matches(option.name) || std::ranges::any_of(option.aliases, matches);
    });
    if (it == options_.end()) {
      std::vector<std::string> known;
      if (settings_ != nullptr) known.push_back("set");
      for (const Option& option : options_) known.push_back(json_key(option.name));
      fail("{}: unknown key \"{}\"{}", source, key, nearest_hint(key, known));
    }
    if (!matches(it->name)) note_renamed(key, json_key(it->name));
    apply(*it, value, shown(value), source + ":");
  }
}

Json OptionTable::json() const {
  Json object = Json::object();
  for (const Option& option : options_) object[json_key(option.name)] = option.saved();
  return object;
}

Json OptionTable::json_with_settings() const {
  Json object = json();
  if (settings_ == nullptr) return object;
  for (const auto& [key, value] : settings_->values()) object[key] = value;
  return object;
}

}  // namespace tw
