// The disk of the run folder: free space, and whether it can be written.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/common/console.h"
#include "apps/doctor/checkup.h"
#include "engine/core/stopwatch.h"

namespace tw {

namespace {

constexpr size_t kWritten = size_t{8} << 20;
constexpr double kLittle = 1024.0 * 1024 * 1024;

/// The folder, or the nearest above it that exists.
std::filesystem::path existing(std::filesystem::path folder) {
  std::error_code ignored;
  folder = std::filesystem::absolute(folder, ignored).lexically_normal();
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

/// Writes some MiB to a file there and removes it. Returns an error, empty if there is none.
std::string write_there(const std::filesystem::path& folder, double& seconds) {
  std::string path = folder / ".thinwire-doctor-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return std::strerror(errno);
  const std::vector<char> block(size_t{1} << 20, 'x');
  Stopwatch watch;
  std::string error;
  for (size_t written = 0; error.empty() && written < kWritten;) {
    const ssize_t n = write(file, block.data(), block.size());
    if (n <= 0) error = std::strerror(n < 0 ? errno : ENOSPC);
    written += n > 0 ? static_cast<size_t>(n) : 0;
  }
  if (error.empty() && fsync(file) != 0) error = std::strerror(errno);
  seconds = watch.total();
  close(file);
  unlink(path.c_str());
  return error;
}

}  // namespace

Findings check_disk(const Checkup& checkup) {
  const std::filesystem::path folder = existing(checkup.config.output_dir);
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  const double available = unknown ? 0 : static_cast<double>(space.available);
  double seconds = 0;
  const std::string error = write_there(folder, seconds);
  Finding found{.name = "disk"};
  found.details = {{"folder", folder.string()}, {"available_bytes", available}};
  if (!error.empty()) {
    found.state = State::problem;
    found.text =
        fmt::format("{}: cannot write {} to a file: {} ({} available)", folder.string(),
                    bytes_text(static_cast<double>(kWritten)), error, bytes_text(available));
    found.cure = "make room there or allow writing, or name another disk with --output-dir";
    return {found};
  }
  const double rate = static_cast<double>(kWritten) / seconds;
  found.details["bytes_per_second"] = rate;
  found.text = fmt::format("{}: {} available, written at {}/s", folder.string(),
                           bytes_text(available), bytes_text(rate));
  if (available < kLittle) {
    found.state = State::note;
    found.text += "; a checkpoint of ResNet-50 takes 200 MiB";
    found.cure =
        "make room there, name another disk with --output-dir, or train with "
        "--checkpoint-every 0";
  }
  return {found};
}

}  // namespace tw
