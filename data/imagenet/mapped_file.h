// MappedFile: a file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace tw {

class MappedFile {
 public:
  /// UserError, prefixed with `component`, when the file cannot be read or is empty.
  MappedFile(std::string_view component, const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether the file still has its original length. Call it before reading bytes: an access beyond
  /// the end of a truncated file kills the process (SIGBUS).
  bool whole() const;

 private:
  int file_;
  std::span<const std::byte> bytes_;
};

}  // namespace tw
