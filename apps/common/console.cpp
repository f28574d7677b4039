#include "apps/common/console.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "engine/core/error.h"

namespace tw {

Console::Console(bool enabled) : enabled_(enabled), terminal_(enabled && ::isatty(STDOUT_FILENO)) {}

void Console::write_line(const std::string& text) {
  clear();
  fmt::print("{}\n", text);
  std::fflush(stdout);
  if (log_.is_open())
    log_ << text << '\n' << std::flush;
  else
    before_ += text + '\n';
}

void Console::log_to(const std::string& path) {
  log_.open(path, std::ios::app);
  check(log_.is_open(), "[log] cannot write {}", path);
  log_ << std::exchange(before_, "") << std::flush;
}

void Console::progress(const Progress& p) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (p.done < p.total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  constexpr int64_t kWidth = 30;
  const int64_t filled = p.total > 0 ? kWidth * p.done / p.total : kWidth;
  fmt::print("\r\033[Kepoch {}/{} |{:#<{}}{:.<{}}| {}/{}  {:.0f} images/s  ETA {}", p.epoch,
             p.epochs, "", filled, "", kWidth - filled, p.done, p.total, p.images_per_s,
             clock_text(p.seconds_left));
  std::fflush(stdout);
  bar_shown_ = true;
}

void Console::clear() {
  if (bar_shown_) fmt::print("\r\033[K");
  bar_shown_ = false;
}

std::string clock_text(double seconds) {
  const int64_t s = static_cast<int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace tw
