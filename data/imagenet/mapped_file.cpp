#include "data/imagenet/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/core/error.h"

namespace tw {

namespace {

/// The length of an open file in bytes; 0 when it has no status.
size_t length_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? static_cast<size_t>(status.st_size) : 0;
}

}  // namespace

MappedFile::MappedFile(std::string_view component, const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  check(file_ >= 0, "{} cannot read {}: {}", component, path.string(), std::strerror(errno));
  const size_t size = length_of(file_);
  void* const memory =
      size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_, 0) : MAP_FAILED;
  if (memory != MAP_FAILED) {
    bytes_ = {static_cast<const std::byte*>(memory), size};
    return;
  }
  const int error = errno;
  ::close(file_);
  check(size > 0, "{} {} is empty", component, path.string());
  fail("{} cannot map {}: {}", component, path.string(), std::strerror(error));
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(file_);
}

bool MappedFile::whole() const { return length_of(file_) >= bytes_.size(); }

}  // namespace tw
