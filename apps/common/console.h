// Console: lines and a progress bar on the terminal, from rank 0 only.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <string>

namespace tw {

class Console {
 public:
  /// Prints nothing unless `enabled`. The progress bar needs a terminal; lines do not.
  explicit Console(bool enabled);

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (enabled_) write_line(fmt::format(text, std::forward<Args>(args)...));
  }
  /// Appends every line to a file, beginning with those so far; UserError if it cannot be opened.
  void log_to(const std::string& path);
  /// Redraws the bar of an epoch, at most ten times a second; only on a terminal.
  struct Progress {
    int64_t epoch, epochs, done, total;
    double images_per_s, seconds_left;
  };
  void progress(const Progress& now);
  /// Erases the bar.
  void clear();

 private:
  void write_line(const std::string& text);

  bool enabled_, terminal_, bar_shown_ = false;
  std::ofstream log_;
  std::string before_;  // lines for the log, as long as it is not open
  std::chrono::steady_clock::time_point last_;
};

/// `1:02:03`, `4:05`
std::string clock_text(double seconds);
/// `12.3 MiB`
std::string bytes_text(double bytes);

}  // namespace tw
