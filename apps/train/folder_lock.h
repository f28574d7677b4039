// FolderLock: one process at a time writes to a folder.
#pragma once

#include <filesystem>

namespace tw {

/// An flock() on a folder, held until destruction or the end of the process. Does nothing on file
/// systems without locks.
class FolderLock {
 public:
  /// UserError when another process still holds the lock after `patience` seconds; a killed one may
  /// take a moment to release it.
  explicit FolderLock(const std::filesystem::path& folder, double patience = 5);
  ~FolderLock();
  /// Fault when `folder` is not the locked folder any more, since it was renamed or removed.
  void check_place(const std::filesystem::path& folder) const;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace tw
