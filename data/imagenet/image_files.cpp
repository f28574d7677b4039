#include "data/imagenet/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "data/imagenet/image_folder.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

/// Closes the descriptor.
struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

}  // namespace

uint64_t FileSource::bytes(size_t i) const {
  std::error_code unknown;
  const uintmax_t size = fs::file_size(name(i), unknown);
  return unknown ? 0 : size;
}

std::span<const std::byte> FileSource::read(size_t i, std::vector<std::byte>& buffer) const {
  const std::string path = name(i);
  // non-blocking, or open() of a pipe waits for a writer
  const OpenFile file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  check<ImageError>(file.descriptor >= 0 && ::fstat(file.descriptor, &status) == 0,
                    "cannot be read: {}", std::strerror(errno));
  check<ImageError>(S_ISREG(status.st_mode), "not a file");
  check_image_bytes(static_cast<uint64_t>(status.st_size));
  const auto size = static_cast<size_t>(status.st_size);
  if (buffer.size() < size) buffer.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.descriptor, buffer.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    check<ImageError>(got > 0, "cannot be read: {}",
                      got == 0 ? "the file was truncated" : std::strerror(errno));
    done += static_cast<size_t>(got);
  }
  return {buffer.data(), size};
}

void check_image_bytes(uint64_t bytes) {
  check<ImageError>(bytes <= kMostImageBytes, "{} bytes; at most {}", bytes, kMostImageBytes);
}

ImageFiles::ImageFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    check(fs::exists(path, error), "[data] {} does not exist", path);
    if (!fs::is_directory(path, error)) {
      files_.push_back(path);
      continue;
    }
    const std::vector<std::string> names = images_below(path, left_out_);
    check(!names.empty(), "[data] {} has no images", path);
    for (const std::string& name : names) files_.push_back((fs::path(path) / name).string());
  }
}

}  // namespace tw
