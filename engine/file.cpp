#include "engine/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/error.h"

namespace tw {

namespace {

/// Flushes a file or a folder to the disk.
void sync(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  check<Fault>(synced, "[file] cannot sync {}: {}", path.string(), std::strerror(error));
}

}  // namespace

void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write) {
  const std::filesystem::path temporary = fmt::format("{}.{}.part", path.string(), ::getpid());
  try {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    check<Fault>(out.is_open(), "[file] cannot write {}: {}", temporary.string(),
                 std::strerror(errno));
    write(out);
    out.close();
    check<Fault>(!out.fail(), "[file] writing {} failed: {}", temporary.string(),
                 std::strerror(errno));
    sync(temporary);
    std::filesystem::rename(temporary, path);
    sync(path.has_parent_path() ? path.parent_path() : ".");
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  write_atomically(path, [&](std::ostream& out) { out << text; });
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const bool readable = in.is_open() && !std::filesystem::is_directory(path);
  check(readable, "[file] cannot read {}: {}", path.string(),
        std::filesystem::is_directory(path) ? "it is a folder" : std::strerror(errno));
  std::vector<std::byte> bytes(static_cast<size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  check(in.good() || bytes.empty(), "[file] reading {} failed", path.string());
  return bytes;
}

}  // namespace tw
