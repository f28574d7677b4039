// A fuzzer's bytes as a file that lives in memory, for readers that want a path.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

namespace tw::fuzz {

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size) : descriptor_(::memfd_create("input", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace tw::fuzz
