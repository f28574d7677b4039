#include "engine/settings.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "engine/error.h"
#include "engine/registry.h"

namespace tw {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

template <class Number>
Number parse(std::string_view key, const std::string& text, const char* kind) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc{} && end == text.data() + text.size(), "[settings] {}={} is not {}", key,
        text, kind);
  return number;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return fmt::format("unknown {} \"{}\"{}; known: {}", kind, name,
                     near.empty() ? "" : fmt::format("; nearest is \"{}\"", near),
                     fmt::join(known, ", "));
}

void Settings::declare(std::string_view prefix, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    declared_.emplace(fmt::format("{}.{}", prefix, setting.key), setting);
}

void Settings::set(std::string_view key, std::string_view value) {
  const auto it = declared_.find(key);
  if (it == declared_.end()) {
    std::vector<std::string> known;
    for (const auto& [name, setting] : declared_) known.push_back(name);
    throw UserError(unknown_name("setting", key, known));
  }
  Setting& setting = it->second;
  const bool allowed =
      setting.choices.empty() || std::ranges::find(setting.choices, value) != setting.choices.end();
  check(allowed, "[settings] {}={}; expected one of: {}", key, value,
        fmt::join(setting.choices, ", "));
  setting.value = value;
}

void Settings::set_assignment(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  check(equals != std::string_view::npos, "[settings] \"{}\" is not of the form key=value",
        assignment);
  set(assignment.substr(0, equals), assignment.substr(equals + 1));
}

const std::string& Settings::text(std::string_view key) const {
  const auto it = declared_.find(key);
  check<std::logic_error>(it != declared_.end(), "[settings] {} was never declared", key);
  return it->second.value;
}

double Settings::number(std::string_view key) const {
  return parse<double>(key, text(key), "a number");
}

int64_t Settings::integer(std::string_view key) const {
  return parse<int64_t>(key, text(key), "an integer");
}

bool Settings::flag(std::string_view key) const {
  const std::string& value = text(key);
  check(value == "true" || value == "false", "[settings] {}={}; expected true or false", key,
        value);
  return value == "true";
}

std::map<std::string, std::string> Settings::values() const {
  std::map<std::string, std::string> result;
  for (const auto& [key, setting] : declared_) result.emplace(key, setting.value);
  return result;
}

}  // namespace tw
