// Console: lines and a progress line on the terminal, from rank 0 only.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "engine/io/file.h"

namespace tw {

/// The columns of standard output; no limit if it is not a terminal.
size_t output_columns();
/// Breaks the lines of a text before words that end beyond `columns`. The rest of a line begins at
/// column `indent`. A word that does not fit stays whole.
std::string wrap(const std::string& text, size_t columns, size_t indent);

class Console {
 public:
  /// Whether lines are written: nowhere, to logs only, or also to standard output.
  enum class Output { none, logs, all };
  /// Without a terminal as standard output, a line of progress follows the line before after
  /// `pause`.
  explicit Console(Output output, std::chrono::seconds pause = std::chrono::minutes(1));
  explicit Console(bool enabled) : Console(enabled ? Output::all : Output::none) {}

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (output_ != Output::none) write_line(fmt::format(text, std::forward<Args>(args)...));
  }
  /// A line of prose: a terminal shows it broken between words. Not for commands, which users copy.
  template <class... Args>
  void paragraph(fmt::format_string<Args...> text, Args&&... args) {
    if (output_ == Output::none) return;
    const std::string whole = fmt::format(text, std::forward<Args>(args)...);
    write_line(whole, wrap(whole, columns(), 2));
  }
  /// Whether lines are kept for a later log.
  enum class Log { one_of_several, last };
  /// Appends every line to a file, too, beginning with those kept so far; UserError if it cannot be
  /// opened. Later lines throw Fault if it cannot be written.
  void log_to(const std::string& path, Log log = Log::one_of_several);
  /// Appends a line to the logs alone, if they take it.
  void log_error(const std::string& line);
  /// Redraws the progress line, at most ten times a second; without a terminal, writes it as a line
  /// that no log has. `text` is given the greatest number of columns that it may take.
  void progress(const std::function<std::string(int columns)>& text);
  /// Erases the progress line.
  void clear();
  /// The columns that a line may take; no limit without a terminal.
  size_t columns() const;

 private:
  void write_line(const std::string& text) { write_line(text, text); }
  /// Writes `text` to the logs and `shown` to standard output.
  void write_line(const std::string& text, const std::string& shown);

  Output output_;
  bool terminal_;
  std::vector<GrowingFile> logs_;
  std::string so_far_;  // all lines, for the next log
  bool keeps_lines_ = true;
  size_t drawn_ = 0;  // columns of the progress line; 0: there is none
  std::chrono::seconds pause_;
  std::chrono::steady_clock::time_point last_;  // when something was written
};

/// `1:02:03`, `4:05`
std::string clock_text(double seconds);
/// `12.3 MiB`
std::string bytes_text(double bytes);
/// `1 rank`, `4 ranks`
std::string counted(int64_t count, const char* noun);
/// `, top-5 0.9876` after a separator; empty for less than ten classes, of which it says nothing.
std::string top5_text(const char* separator, double share, int64_t classes);

}  // namespace tw
