#include "apps/common/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/registry.h"
#include "engine/core/text.h"

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
    if (const std::optional<double> number = number_in<double>(text)) return *number;
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

template <class T>
bool fits(const Json& value) {
  T converted;
  return convert(value, converted);
}

/// T, or that of std::optional<T>.
template <class T>
struct Unwrapped {
  using type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};
template <class T>
using ValueOf = typename Unwrapped<T>::type;

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text = value.dump();
  if (value.is_array()) text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

OptionTable::Option& OptionTable::declare(std::string name, std::string help, OptionRules rules) {
  Option& option = options_.emplace_back(
      Option{group_, std::move(name), std::move(help), std::move(rules), kind_of<std::string>()});
  option.rules.effect = option.rules.effect.value_or(effect_);
  option.parse = from_text<std::string>;
  option.fits = fits<std::string>;
  if (!option.rules.empty_list.empty()) option.words = {{option.rules.empty_list, "[]"}};
  return option;
}

template <class T>
void OptionTable::add(std::string name, T& target, std::string help, OptionRules rules) {
  using Value = ValueOf<T>;
  Option& option = declare(std::move(name), std::move(help), std::move(rules));
  option.is_flag = std::is_same_v<T, bool>;
  option.kind = option.rules.size_units ? "a size in bytes, like 4K or 64M" : kind_of<Value>();
  option.parse = option.rules.size_units ? size_from_text : from_text<Value>;
  option.fits = fits<Value>;
  if constexpr (std::is_same_v<T, Value>) {
    option.get = [&target] { return Json(target); };
    option.set = [&target](const Json& value) { convert(value, target); };
  } else {
    option.words.emplace(option.words.begin(), option.rules.none, "null");
    option.get = [&target] { return target ? Json(*target) : Json(); };
    option.set = [&target](const Json& value) {
      target.reset();
      if (!value.is_null()) convert(value, target.emplace());
    };
  }
  option.default_text = shown(option.saved());
}

template void OptionTable::add(std::string, bool&, std::string, OptionRules);
template void OptionTable::add(std::string, int64_t&, std::string, OptionRules);
template void OptionTable::add(std::string, double&, std::string, OptionRules);
template void OptionTable::add(std::string, std::string&, std::string, OptionRules);
template void OptionTable::add(std::string, std::vector<int64_t>&, std::string, OptionRules);
template void OptionTable::add(std::string, std::vector<double>&, std::string, OptionRules);
template void OptionTable::add(std::string, std::optional<int64_t>&, std::string, OptionRules);
template void OptionTable::add(std::string, std::optional<double>&, std::string, OptionRules);
template void OptionTable::add(std::string, std::optional<std::vector<double>>&, std::string,
                               OptionRules);

void OptionTable::add(std::string name, std::vector<std::string>& target, std::string help,
                      OptionRules rules) {
  Option& option = declare(std::move(name), std::move(help), std::move(rules));
  option.is_list = true;
  option.fits = [](const Json& value) { return value.is_string(); };  // a file may have any name
  option.get = [&target] { return Json(fmt::format("{}", fmt::join(target, " "))); };
  option.set = [&target](const Json& value) { target.push_back(value.get<std::string>()); };
}

void OptionTable::add_words(std::string name, std::string help, OptionRules rules,
                            const std::vector<std::string>& all, const std::function<size_t()>& get,
                            const std::function<void(size_t)>& set) {
  Option& option = declare(std::move(name), std::move(help), std::move(rules));
  if (option.rules.choices.empty()) option.rules.choices = all;
  option.get = [all, get] { return Json(all[get()]); };
  option.set = [all, set](const Json& value) {
    set(static_cast<size_t>(std::ranges::find(all, value.get<std::string>()) - all.begin()));
  };
  option.default_text = shown(option.saved());
}

void OptionTable::add_settings(Settings& settings) {
  settings_group_ = group_;
  settings_ = &settings;
}

void OptionTable::add_short_form(std::string name, const std::string& key, std::string help,
                                 OptionRules rules) {
  Option& option = declare(std::move(name), std::move(help), std::move(rules));
  option.rules.traits |= kUnsaved;  // the settings have it
  option.get = [] { return Json(""); };
  option.set = [settings = settings_, key](const Json& value) {
    if (value != "") settings->set(key, value.get<std::string>());
  };
}

std::vector<std::string> OptionTable::keys(unsigned traits) const {
  std::vector<std::string> keys;
  for (const Option& option : options_)
    if (option.has(traits)) keys.push_back(json_key(option.name));
  return keys;
}

Effect OptionTable::effect_of(const std::string& key) const {
  for (const Option& option : options_)
    if (json_key(option.name) == key) return *option.rules.effect;
  return Effect::experiment;
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
    return (rules.excludes_least ? number > rules.least : number >= rules.least) &&
           number <= rules.most;
  });
}

Json OptionTable::Option::saved() const {
  const Json value = get();
  return value.is_null() ? Json(rules.none) : value;
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
  if (!option.rules.choices.empty())
    check(std::ranges::find(option.rules.choices, value.get<std::string>()) !=
              option.rules.choices.end(),
          "{}; expected one of: {}", what, fmt::join(option.rules.choices, ", "));
  check(option.in_range(value), "{}; expected {}", what,
        fmt::format(
            fmt::runtime(option.rules.excludes_least ? "more than {}, at most {}" : "{} to {}"),
            option.rules.least, option.rules.most));
  option.set(value);
  option.is_set = true;
  if (!option.rules.default_of.empty())
    settings_->set_default(option.rules.default_of, shown(value));
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
  if (option.rules.given != nullptr) *option.rules.given = true;
  // a flag also comes before a setting of a file, as that of a resumed run
  if (!option.rules.default_of.empty() && settings_->was_set(option.rules.default_of))
    settings_->set(option.rules.default_of, text);
}

void OptionTable::set_json(const Json& object, const std::string& source) {
  check(object.is_object(), "{}: not a JSON object", source);
  for (const auto& [key, value] : object.items()) {
    const auto it = std::ranges::find_if(
        options_, [&key = key](const Option& option) { return json_key(option.name) == key; });
    if (it == options_.end()) {
      std::vector<std::string> known;
      if (settings_ != nullptr) known.emplace_back("set");
      for (const Option& option : options_) known.push_back(json_key(option.name));
      fail("{}: unknown key \"{}\"{}", source, key, nearest_hint(key, known));
    }
    apply(*it, value, shown(value), source + ":");
  }
}

Json OptionTable::json(unsigned without) const {
  Json object = Json::object();
  for (const Option& option : options_)
    if (!option.has(without)) object[json_key(option.name)] = option.saved();
  return object;
}

Json OptionTable::json_with_settings(unsigned without) const {
  Json object = json(without);
  if (settings_ == nullptr) return object;
  for (const auto& [key, value] : settings_->values()) object[key] = value;
  return object;
}

}  // namespace tw
