// Registry: entries chosen by name (models, selectors, exchanges), each with a help line, settings
// and a value, usually a factory. A file adds its entry with one statement at its end.
#pragma once

#include <algorithm>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/settings.h"

namespace tw {

/// `unknown model "resnet21"; nearest is "resnet20"; known: ...`
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known);
/// As above, but the message lists `labels` as the known entries; the nearest is still one of
/// `known`.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known,
                         const std::vector<std::string>& labels);

template <class Value>
class Registry {
 public:
  struct Entry {
    std::string name;  ///< a-z, 0-9 and _: settings, files and tests are named after it
    std::string help;
    Value value;                         ///< usually a factory
    std::vector<Setting> settings{};     ///< keys of `--set name.key=value`
    std::vector<std::string> aliases{};  ///< other accepted names, also in `--set`

    /// The name and its aliases: `binomial_tree [mst]`.
    std::string label() const {
      std::string text = name;
      for (const std::string& alias : aliases) text += fmt::format(" [{}]", alias);
      return text;
    }
    bool is_called(std::string_view other) const {
      return other == name || std::ranges::find(aliases, other) != aliases.end();
    }
  };

  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  bool add(Entry entry) {
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    check<std::logic_error>(!entry.name.empty() && std::ranges::all_of(entry.name, is_plain),
                            "{} \"{}\": a name has the characters a-z, 0-9 and _; other spellings "
                            "are aliases",
                            kind_, entry.name);
    const auto check_free = [&](const std::string& name) {
      check<std::logic_error>(lookup(name) == nullptr, "{} \"{}\" is registered twice", kind_,
                              name);
    };
    check_free(entry.name);
    for (const std::string& alias : entry.aliases) check_free(alias);
    entries_.emplace(entry.name, std::move(entry));
    return true;
  }

  /// The entry with this name or alias. UserError on an unknown name; it lists the known names.
  const Entry& find(std::string_view name) const {
    if (const Entry* const entry = lookup(name)) return *entry;
    std::vector<std::string> accepted, labels;
    for (const auto& [key, entry] : entries_) {
      accepted.push_back(key);
      accepted.insert(accepted.end(), entry.aliases.begin(), entry.aliases.end());
      labels.push_back(entry.label());
    }
    throw UserError(unknown_name(kind_, name, accepted, labels));
  }

  /// Without aliases, in alphabetical order.
  std::vector<std::string> names() const {
    const auto keys = std::views::keys(entries_);
    return {keys.begin(), keys.end()};
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const std::string& kind() const { return kind_; }

 private:
  const Entry* lookup(std::string_view name) const {
    if (const auto it = entries_.find(name); it != entries_.end()) return &it->second;
    for (const auto& [key, entry] : entries_)
      if (entry.is_called(name)) return &entry;
    return nullptr;
  }

  std::string kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Declares the settings of all entries of the registries.
template <class... Value>
void declare(Settings& settings, const Registry<Value>&... registries) {
  const auto all = [&](const auto& registry) {
    for (const auto& [name, entry] : registry.entries()) {
      settings.declare(name, entry.settings);
      for (const std::string& alias : entry.aliases) settings.add_alias(alias, name);
    }
  };
  (all(registries), ...);
}

}  // namespace tw
