#include "engine/core/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/registry.h"
#include "engine/core/text.h"

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

/// The whole of `text` as a finite number.
template <class Number>
std::optional<Number> parse(std::string_view text) {
  const std::optional<Number> number = number_in<Number>(text);
  return number && std::isfinite(static_cast<double>(*number)) ? number : std::nullopt;
}

bool is_flag(std::string_view text) { return text == "true" || text == "false"; }

/// The kind of `standard` in words, when `value` is of another kind; else null.
const char* expected_kind(std::string_view standard, std::string_view value) {
  if (is_flag(standard)) return is_flag(value) ? nullptr : "true or false";
  if (parse<int64_t>(standard)) return parse<int64_t>(value) ? nullptr : "an integer";
  if (parse<double>(standard)) return parse<double>(value) ? nullptr : "a number";
  return nullptr;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  // a letter is near to every short name
  size_t best_distance = name.size() == 1 ? 1 : std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(name); };
  if (best.empty() && !name.empty() && std::ranges::count_if(known, begins) == 1)
    best = *std::ranges::find_if(known, begins);
  std::string initials;  // of --learning-rate
  for (size_t i = 0; i < name.size(); ++i)
    if (i == 0 || name[i - 1] == '-') initials += name[i];
  if (best.empty() && initials.size() > 1 && std::ranges::count(known, initials) > 0)
    best = initials;
  return best;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format("; nearest is \"{}\"", near);
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known) {
  return unknown_name(kind, name, known, known);
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known,
                         const std::vector<std::string>& labels) {
  return fmt::format("unknown {} \"{}\"{}; known: {}", kind, name, nearest_hint(name, known),
                     fmt::join(labels, ", "));
}

void Settings::declare(std::string_view prefix, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string key = fmt::format("{}.{}", prefix, setting.key);
    declared_.emplace(key, setting);
    values_.emplace(key, setting.value);
    read_[key];
  }
}

void Settings::add_alias(std::string_view alias, std::string_view prefix) {
  aliases_.emplace(alias, prefix);
}

void Settings::set(std::string_view key, std::string_view value) {
  const size_t dot = std::min(key.find('.'), key.size());
  if (const auto alias = aliases_.find(key.substr(0, dot)); alias != aliases_.end())
    return set(fmt::format("{}{}", alias->second, key.substr(dot)), value);
  assign(key, value);
  set_.emplace(key);
}

void Settings::set_default(std::string_view key, std::string_view value) {
  if (!set_.contains(key)) assign(key, value);
}

void Settings::assign(std::string_view key, std::string_view value) {
  const auto it = declared_.find(key);
  if (it == declared_.end()) {
    std::vector<std::string> known;
    for (const auto& [name, setting] : declared_) known.push_back(name);
    throw UserError(unknown_name("setting", key, known));
  }
  const Setting& setting = it->second;
  const bool allowed =
      setting.choices.empty() || std::ranges::find(setting.choices, value) != setting.choices.end();
  check(allowed, "[settings] {}={}; expected one of: {}", key, value,
        fmt::join(setting.choices, ", "));
  const char* expected = setting.choices.empty() ? expected_kind(setting.value, value) : nullptr;
  check(expected == nullptr, "[settings] {}={}; expected {}", key, value, expected);
  const double number = setting.least || setting.most ? parse<double>(value).value() : 0;
  check(!setting.least || number >= *setting.least, "[settings] {}={}; expected at least {}", key,
        value, setting.least.value_or(0));
  check(!setting.most || number <= *setting.most, "[settings] {}={}; expected at most {}", key,
        value, setting.most.value_or(0));
  values_.find(key)->second = value;
}

void Settings::set_assignment(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  check(equals != std::string_view::npos, "[settings] \"{}\" is not of the form key=value",
        assignment);
  set(assignment.substr(0, equals), assignment.substr(equals + 1));
}

const std::string& Settings::text(std::string_view key) const {
  const auto it = values_.find(key);
  check<std::logic_error>(it != values_.end(), "[settings] {} was never declared", key);
  read_.find(key)->second.set(true);
  return it->second;
}

std::vector<std::string> Settings::unread(const std::vector<std::string>& given) const {
  std::vector<std::string> keys;
  for (const auto& [key, setting] : declared_) {
    const bool changed = (set_.contains(key) && values_.find(key)->second != setting.value) ||
                         std::ranges::find(given, key) != given.end();
    if (changed && !read_.find(key)->second.get()) keys.push_back(key);
  }
  return keys;
}

void Settings::forget_reads() const {
  for (const auto& [key, mark] : read_) mark.set(false);
}

double Settings::number(std::string_view key) const { return parse<double>(text(key)).value(); }

int64_t Settings::integer(std::string_view key) const { return parse<int64_t>(text(key)).value(); }

bool Settings::flag(std::string_view key) const { return text(key) == "true"; }

}  // namespace tw
