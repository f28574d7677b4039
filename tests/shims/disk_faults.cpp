// A library for LD_PRELOAD. It counts the calls of a program that open or change files below a
// folder, and makes one of them fail, or sends the program a signal there. With a journal it also
// records what each call wrote, so that scripts/dev/faults/journal.py can compute what a disk
// would hold after a power cut.
//
//   TW_DISK_FOLDER   absolute path; calls for other files pass uncounted
//   TW_DISK_FAULT    N:WHAT or N+:WHAT; WHAT is EIO, ENOSPC, EDQUOT, EINTR, short (half a write),
//                    lost (a write that does nothing and succeeds), kill or stop. Call N is hit;
//                    with + also all later ones (EIO), or those of them that need space
//   TW_DISK_RANK     only this rank of mpirun is hit
//   TW_DISK_JOURNAL  file: for each call a line `number call flags offset bytes path TAB path`, and
//                    after it the bytes that a write wrote; `!` before the call: it is hit. The
//                    flags of truncate are the new length
//   TW_DISK_NO_SYNC  if set, fsync does nothing and succeeds: a defect for tests of the tools
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Call {
  const char* name;
  std::string path = {}, to = {};
  int flags = 0;
  bool needs_space = false;
};

struct Shim {
  Shim() {
    const std::string fault = variable("TW_DISK_FAULT");
    if (const size_t colon = fault.find(':'); colon != std::string::npos) {
      at = std::atoll(fault.c_str());
      onwards = fault[colon - 1] == '+';
      what = fault.substr(colon + 1);
    }
    const std::string only = variable("TW_DISK_RANK");
    const std::string rank = variable("PMI_RANK") + variable("OMPI_COMM_WORLD_RANK");
    if (!only.empty() && only != rank) at = 0;
    if (const std::string path = variable("TW_DISK_JOURNAL"); !path.empty())
      journal = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(),
                                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }

  bool watches(const std::string& path) const {
    return !folder.empty() && path.starts_with(folder) &&
           (path.size() == folder.size() || path[folder.size()] == '/');
  }

  bool hit(const Call& call) const {
    if (at == 0 || count < at) return false;
    return count == at || (onwards && (what == "EIO" || call.needs_space));
  }

  /// Sends a signal, or returns the errno of the fault: 0 for none.
  int fault_of(const Call& call) const {
    if (!hit(call)) return 0;
    record({.name = ("!" + std::string(call.name)).c_str(), .path = call.path}, 0, {});
    if (what == "kill") kill(getpid(), SIGKILL);
    if (what == "stop") kill(getpid(), SIGSTOP);
    if (what == "EIO") return EIO;
    if (what == "ENOSPC") return ENOSPC;
    if (what == "EDQUOT") return EDQUOT;
    return what == "EINTR" ? EINTR : 0;
  }

  void record(const Call& call, off_t offset, std::string_view data) const {
    if (journal < 0) return;
    std::string line = std::to_string(count) + ' ' + call.name + ' ' + std::to_string(call.flags) +
                       ' ' + std::to_string(offset) + ' ' + std::to_string(data.size()) + ' ' +
                       call.path + '\t' + call.to + '\n';
    line += data;
    for (std::string_view left = line; !left.empty();) {
      const long n = syscall(SYS_write, journal, left.data(), left.size());
      if (n <= 0) return;
      left.remove_prefix(static_cast<size_t>(n));
    }
  }

  std::mutex mutex;  // held during a call, so that the journal has the order of the effects
  long long count = 0, at = 0;
  bool onwards = false;
  std::string what, folder = variable("TW_DISK_FOLDER");
  const bool no_sync = !variable("TW_DISK_NO_SYNC").empty();
  int journal = -1;
};

Shim& shim() {
  static Shim* const one = new Shim;  // never destroyed: calls come until the end of the process
  return *one;
}

std::string link_of(int file) {
  char text[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t n = readlink(link.c_str(), text, sizeof text);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

std::string absolute(int folder, const char* path) {
  if (!path || path[0] == '/') return path ? path : "";
  if (folder != AT_FDCWD) return link_of(folder) + '/' + path;
  char text[4096];
  return std::string(getcwd(text, sizeof text) ? text : "") + '/' + path;
}

/// Calls `real`, unless this is the call to fail; `failed` is the value it then returns.
template <class Real, class Result>
Result counted(const Call& call, Result failed, const Real& real) {
  Shim& s = shim();
  if (!s.watches(call.path)) return real();
  const std::lock_guard lock(s.mutex);
  ++s.count;
  const int error = s.fault_of(call);
  if (error == 0) {
    const Result result = real();
    if (result != failed) s.record(call, 0, {});
    return result;
  }
  errno = error;
  return failed;
}

Call open_call(std::string path, int flags) {
  return {.name = "open",
          .path = std::move(path),
          .flags = flags,
          .needs_space = (flags & O_CREAT) != 0};
}

/// The flags of open() for the mode of fopen().
int flags_of(const char* mode) {
  const bool both = std::strchr(mode, '+') != nullptr;
  const int access = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  return access | (mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0);
}

mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  return counted(open_call(absolute(folder, path), flags), -1,
                 [&] { return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode)); });
}

/// One write of `parts` at the position of the file.
ssize_t write_parts(int file, const iovec* parts, int n) {
  Shim& s = shim();
  const auto real = [&](const iovec* list, int count) {
    return static_cast<ssize_t>(syscall(SYS_writev, file, list, count));
  };
  const std::string path = s.folder.empty() ? "" : link_of(file);
  if (!s.watches(path)) return real(parts, n);
  const std::lock_guard lock(s.mutex);
  ++s.count;
  const Call call{.name = "write", .path = path, .needs_space = true};
  if (const int error = s.fault_of(call)) {
    errno = error;
    return -1;
  }
  std::string bytes;
  for (int i = 0; i < n; ++i) bytes.append(static_cast<char*>(parts[i].iov_base), parts[i].iov_len);
  if (s.hit(call) && s.what == "lost") return static_cast<ssize_t>(bytes.size());
  if (s.hit(call) && s.what == "short" && bytes.size() > 1) bytes.resize(bytes.size() / 2);
  const bool appends = (fcntl(file, F_GETFL) & O_APPEND) != 0;
  const off_t offset = lseek(file, 0, appends ? SEEK_END : SEEK_CUR);
  const iovec all{bytes.data(), bytes.size()};
  const ssize_t written = real(&all, 1);
  if (written > 0) s.record(call, offset, {bytes.data(), static_cast<size_t>(written)});
  return written;
}

int sync_file(int file, const char* name) {
  if (shim().no_sync) return 0;
  return counted({.name = "fsync", .path = link_of(file)}, -1,
                 [&] { return next<int(int)>(name)(file); });
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_at(folder, path, flags, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return counted(open_call(absolute(AT_FDCWD, path), flags_of(mode)), static_cast<FILE*>(nullptr),
                 [&] { return next<FILE*(const char*, const char*)>("fopen64")(path, mode); });
}

FILE* fopen(const char* path, const char* mode) { return fopen64(path, mode); }

ssize_t write(int file, const void* data, size_t bytes) {
  const iovec one{const_cast<void*>(data), bytes};
  return write_parts(file, &one, 1);
}

ssize_t writev(int file, const iovec* parts, int n) { return write_parts(file, parts, n); }

int fsync(int file) { return sync_file(file, "fsync"); }
int fdatasync(int file) { return sync_file(file, "fdatasync"); }

int rename(const char* from, const char* to) {
  const Call call{.name = "rename", .path = absolute(AT_FDCWD, from), .to = absolute(AT_FDCWD, to)};
  return counted(call, -1, [&] { return next<int(const char*, const char*)>("rename")(from, to); });
}

int link(const char* from, const char* to) {
  const Call call{.name = "link",
                  .path = absolute(AT_FDCWD, from),
                  .to = absolute(AT_FDCWD, to),
                  .needs_space = true};
  return counted(call, -1, [&] { return next<int(const char*, const char*)>("link")(from, to); });
}

int truncate64(const char* path, off64_t length) {
  const Call call{
      .name = "truncate", .path = absolute(AT_FDCWD, path), .flags = static_cast<int>(length)};
  return counted(call, -1,
                 [&] { return next<int(const char*, off64_t)>("truncate64")(path, length); });
}

int truncate(const char* path, off_t length) { return truncate64(path, length); }

int mkdir(const char* path, mode_t mode) {
  return counted({.name = "mkdir", .path = absolute(AT_FDCWD, path), .needs_space = true}, -1,
                 [&] { return next<int(const char*, mode_t)>("mkdir")(path, mode); });
}

int unlinkat(int folder, const char* path, int flags) {
  return counted({.name = "unlink", .path = absolute(folder, path), .flags = flags}, -1,
                 [&] { return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags)); });
}

int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) {
  return counted({.name = "unlink", .path = absolute(AT_FDCWD, path)}, -1,
                 [&] { return next<int(const char*)>("remove")(path); });
}
}
