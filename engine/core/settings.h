// Settings: the values behind `--set gaussiank.refine=paper`. Each registry entry declares its keys
// with default and help text. Values are checked when they are set.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

/// One key of an entry. The default decides the kind of its values: integer (`4`), number (`0.5`),
/// flag (`true`, `false`) or text.
struct Setting {
  std::string key;    ///< without the entry's name: `refine`
  std::string value;  ///< default
  std::string help;
  std::vector<std::string> choices{};  ///< allowed values; empty: any
  std::optional<double> least{};       ///< least allowed number
  std::optional<double> most{};        ///< largest allowed number
};

/// Whether a value has been read. Threads may read one Settings at a time.
class ReadMark {
 public:
  ReadMark() = default;
  ReadMark(const ReadMark& other) : read_(other.read_.load()) {}
  ReadMark& operator=(const ReadMark& other) {
    read_ = other.read_.load();
    return *this;
  }
  void set(bool read) const { read_ = read; }
  bool get() const { return read_; }

 private:
  mutable std::atomic<bool> read_ = false;
};

class Settings {
 public:
  /// Declares `prefix.key` for each setting, with its default.
  void declare(std::string_view prefix, const std::vector<Setting>& settings);
  /// Sets a declared key. UserError on an unknown key (names the nearest), on a value that is not
  /// among the choices, not of the default's kind, below the least or above the most.
  void set(std::string_view key, std::string_view value);
  /// Changes the default of a declared key: as set(), but a key that was set keeps its value.
  void set_default(std::string_view key, std::string_view value);
  /// Whether set() has set a declared key, to its default or another value.
  bool was_set(std::string_view key) const { return set_.contains(key); }
  /// Accepts keys `alias.key` for those declared as `prefix.key`.
  void add_alias(std::string_view alias, std::string_view prefix);
  /// `key=value`
  void set_assignment(std::string_view assignment);

  const std::string& text(std::string_view key) const;
  double number(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  bool flag(std::string_view key) const;

  /// The keys that were set to other values than their defaults, or that `given` names, and that no
  /// one has read since forget_reads().
  std::vector<std::string> unread(const std::vector<std::string>& given) const;
  void forget_reads() const;

  /// The allowed values of a declared key; empty: any.
  const std::vector<std::string>& choices(std::string_view key) const {
    return declared_.find(key)->second.choices;
  }

  /// All declared keys with their current values.
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

 private:
  void assign(std::string_view key, std::string_view value);

  std::map<std::string, Setting, std::less<>> declared_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, ReadMark, std::less<>> read_;
  std::map<std::string, std::string, std::less<>> aliases_;  // of prefixes
  std::set<std::string, std::less<>> set_;                   // keys that set() has changed
};

/// The member of `known` with the smallest edit distance to `name`, or the only one that begins
/// with it; empty if none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

/// `; nearest is "NAME"`, for the error of a name that is not known; empty if none is near.
std::string nearest_hint(std::string_view name, const std::vector<std::string>& known);

}  // namespace tw
