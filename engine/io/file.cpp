#include "engine/io/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/core/error.h"

namespace tw {

void sync_to_disk(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  check<Fault>(synced, "[file] cannot sync {}: {}", path.string(), std::strerror(error));
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  check<Fault>(!error, "[file] cannot replace {}: {}", to.string(), error.message());
  sync_to_disk(to.has_parent_path() ? to.parent_path() : ".");
}

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
    sync_to_disk(temporary);
    rename_durably(temporary, path);
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
  std::ifstream in(path, std::ios::binary);
  check(in.is_open(), "[file] cannot read {}: {}", path.string(), std::strerror(errno));
  std::error_code ignored;
  check(!std::filesystem::is_directory(path, ignored), "[file] cannot read {}: it is a folder",
        path.string());
  std::vector<std::byte> bytes;
  size_t size = 0;
  for (size_t chunk = 1 << 16; in; chunk = size) {  // the size of a pipe is unknown
    bytes.resize(size + chunk);
    in.read(reinterpret_cast<char*>(bytes.data()) + size, static_cast<std::streamsize>(chunk));
    size += static_cast<size_t>(in.gcount());
  }
  check(!in.bad(), "[file] reading {} failed", path.string());
  bytes.resize(size);
  return bytes;
}

}  // namespace tw
