// Console: what a person sees. Rank 0 speaks, the others keep silent.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <string>

namespace tw {

class Console {
 public:
  /// `speaks`: only rank 0 does. A progress bar needs a terminal; elsewhere plain lines appear.
  explicit Console(bool speaks);

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (speaks_) write_line(fmt::format(text, std::forward<Args>(args)...));
  }
  /// Redraws the bar of an epoch, at most ten times a second; on no terminal, does nothing.
  struct Progress {
    int64_t epoch, epochs, done, total;
    double images_per_s, seconds_left;
  };
  void progress(const Progress& now);
  /// Removes the bar.
  void clear();

 private:
  void write_line(const std::string& text);

  bool speaks_, terminal_, bar_shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

/// `1:02:03`, `4:05`
std::string clock_text(double seconds);
/// `12.3 MiB`
std::string bytes_text(double bytes);

}  // namespace tw
