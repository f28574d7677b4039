// Registry: entries that are chosen by name (models, selectors, exchanges), each with a help line,
// settings and a factory. A file adds its entry with one statement at its end.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/settings.h"

namespace tw {

/// `unknown model "resnet21"; nearest is "resnet20"; known: ...`
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known);

template <class Value>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string help;
    Value value;                      ///< a factory, or what the name stands for
    std::vector<Setting> settings{};  ///< what `--set name.key=value` may set
  };

  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  bool add(Entry entry) {
    check<std::logic_error>(!entries_.contains(entry.name), "{} \"{}\" is registered twice", kind_,
                            entry.name);
    entries_.emplace(entry.name, std::move(entry));
    return true;
  }

  /// The entry called `name`; UserError with the known and the nearest names when there is none.
  const Entry& find(std::string_view name) const {
    const auto it = entries_.find(name);
    if (it == entries_.end()) throw UserError(unknown_name(kind_, name, names()));
    return it->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Declares the settings of all entries of the registries.
template <class... Value>
void declare(Settings& settings, const Registry<Value>&... registries) {
  const auto all = [&](const auto& registry) {
    for (const auto& [name, entry] : registry.entries()) settings.declare(name, entry.settings);
  };
  (all(registries), ...);
}

}  // namespace tw
