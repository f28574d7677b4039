#include "apps/train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "engine/core/error.h"
#include "engine/core/stopwatch.h"

namespace tw {

FolderLock::FolderLock(const std::filesystem::path& folder, double patience)
    : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  check(file_ >= 0, "[run] cannot open {}: {}", folder.string(), std::strerror(errno));
  Stopwatch watch;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (watch.total() >= patience) {
      close(file_);
      fail("[run] {} is in use by another process", folder.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void FolderLock::check_place(const std::filesystem::path& folder) const {
  struct stat locked {
  }, there{};
  const bool same = fstat(file_, &locked) == 0 && stat(folder.c_str(), &there) == 0 &&
                    locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
  check<Fault>(same, "[run] {} was renamed or removed while the run went on", folder.string());
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace tw
