#include "apps/common/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/utf8.h"

namespace tw {

namespace {

/// Columns of the terminal; 80 if it does not say.
size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// Whether standard output is a terminal that can erase a line.
bool has_terminal() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

Console::Console(Output output, std::chrono::seconds pause)
    : output_(output),
      terminal_(output == Output::all && has_terminal()),
      pause_(pause),
      last_(std::chrono::steady_clock::now()) {}

void Console::write_line(const std::string& text, const std::string& shown) {
  const auto line = [](const std::string& any) { return printable(any, "\n") + '\n'; };
  if (output_ == Output::all) {
    clear();
    fmt::print("{}", line(shown));
    std::fflush(stdout);
    if (!terminal_) last_ = std::chrono::steady_clock::now();
  }
  if (keeps_lines_) so_far_ += line(text);
  for (GrowingFile& log : logs_) log.write(line(text));
}

void Console::log_to(const std::string& path, Log log) {
  logs_.emplace_back(path, GrowingFile::Start::append).write(so_far_);
  if (log == Log::one_of_several) return;
  keeps_lines_ = false;
  so_far_ = {};
}

void Console::log_error(const std::string& line) try {
  for (GrowingFile& log : logs_) log.write(line + '\n');
} catch (const Fault&) {  // the error that is told matters more
}

void Console::progress(const std::function<std::string(int columns)>& text) {
  if (output_ != Output::all) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? std::chrono::milliseconds(100) : pause_)) return;
  last_ = now;
  // a character in the last column would make some terminals begin a line
  const std::string line = text(static_cast<int>(terminal_columns()) - 1);
  clear();
  fmt::print("{}{}", line, terminal_ ? "" : "\n");
  std::fflush(stdout);
  if (terminal_) drawn_ = line.size();
}

size_t Console::columns() const { return terminal_ ? terminal_columns() : SIZE_MAX; }

void Console::clear() {
  if (drawn_ == 0) return;
  // a terminal that became narrower has wrapped the line; the cursor is in the last part
  const size_t wrapped = (drawn_ - 1) / terminal_columns();
  fmt::print("\r{}\033[J", wrapped > 0 ? fmt::format("\033[{}A", wrapped) : "");
  drawn_ = 0;
}

size_t output_columns() { return ::isatty(STDOUT_FILENO) ? terminal_columns() : SIZE_MAX; }

std::string wrap(const std::string& text, size_t columns, size_t indent) {
  std::string wrapped;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    std::string line = text.substr(start, end - start);
    start = end;
    while (line.size() - line.ends_with('\n') > columns) {
      size_t space = line.rfind(' ', columns);
      if (space == std::string::npos || space <= indent) space = line.find(' ', indent + 1);
      if (space == std::string::npos) break;
      wrapped += line.substr(0, space) + '\n';
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    wrapped += line;
  }
  return wrapped;
}

std::string clock_text(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string counted(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string top5_text(const char* separator, double share, int64_t classes) {
  return classes < 10 ? "" : fmt::format("{}top-5 {:.4f}", separator, share);
}

}  // namespace tw
