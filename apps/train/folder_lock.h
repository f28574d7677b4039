// FolderLock: one process at a time works in a folder.
#pragma once

#include <filesystem>

namespace tw {

/// Held from construction until it goes or the process ends, however that happens; nothing is
/// written. Where the file system has no locks, it holds nothing.
class FolderLock {
 public:
  /// UserError when another process still holds it after `patience` seconds: one that was killed
  /// takes a moment to go.
  explicit FolderLock(const std::filesystem::path& folder, double patience = 5);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace tw
