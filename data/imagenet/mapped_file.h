// MappedFile: a file's bytes as memory, read by the system when they are looked at.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace tw {

class MappedFile {
 public:
  /// UserError, which begins with `place`, when the file cannot be read or is empty.
  MappedFile(std::string_view place, const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether it is still as long as it was. To be asked before bytes are looked at: where a file
  /// has been cut, looking there ends the process.
  bool whole() const;

 private:
  int file_;
  std::span<const std::byte> bytes_;
};

}  // namespace tw
