// Reads the small text files in which Linux describes the machine.
#pragma once

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tw {

/// The text of a file; empty if it cannot be read.
inline std::string whole_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? text.str() : "";
}

/// What follows `key` and a colon on the first line that begins with them; empty if there is none.
inline std::string value_in(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
    if (line.find_last_not_of(" \t", colon - 1) + 1 != key.size()) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

/// The first number of a file of a control group, such as `memory.max`; none without a limit.
inline std::optional<double> group_limit(const std::string& file) {
  std::istringstream text(whole_text("/sys/fs/cgroup/" + file));
  double limit = 0;
  if (!(text >> limit)) return std::nullopt;  // "max"
  return limit;
}

/// Bytes of a row of /proc/meminfo.
inline double memory_row(const char* key) {
  std::istringstream text(value_in(whole_text("/proc/meminfo"), key));
  double kib = 0;
  text >> kib;
  return kib * 1024;
}

/// Bytes that new programs can take, of the machine or of the control group of this process.
inline double available_memory() {
  const double of_machine = memory_row("MemAvailable");
  const std::optional<double> limit = group_limit("memory.max");
  if (!limit) return of_machine;
  return std::clamp(*limit - group_limit("memory.current").value_or(0), 0.0, of_machine);
}

}  // namespace tw
