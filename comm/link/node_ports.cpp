// The first rank of the node creates an anonymous file in memory; the other ranks open it as
// /proc/PID/fd/N of that rank.

#include "comm/link/node_ports.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <random>
#include <string>

#include "comm/link/port.h"
#include "engine/core/error.h"

namespace tw {

struct NodePorts::Shared {
  pthread_mutex_t mutex;
  uint64_t token;  // confirms that a path led to this memory
  Port ports[2];
};

namespace {

/// The location of the memory: a file descriptor of a process.
struct MemoryFile {
  uint64_t token;
  int64_t process, file;
};

template <class T>
Bytes bytes_of(T& item) {
  return std::as_writable_bytes(std::span(&item, 1));
}

/// The shared memory behind a file descriptor, or null.
void* map(int file, size_t bytes) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || static_cast<size_t>(status.st_size) != bytes)
    return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Makes the mutex usable by all ranks of the node, and recoverable when a rank dies holding it.
void initialize(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

NodePorts::NodePorts(Context& ctx, Communicator& comm, int first, int last) {
  if (comm.rank() == first) {
    const int file = memfd_create("thinwire-ports", MFD_CLOEXEC);
    const bool sized = file >= 0 && ftruncate(file, sizeof(Shared)) == 0;
    shared_ = static_cast<Shared*>(sized ? map(file, sizeof(Shared)) : nullptr);
    if (shared_) {
      new (shared_) Shared{.mutex = {}, .token = std::random_device()(), .ports = {}};
      initialize(shared_->mutex);
    }
    MemoryFile memory_file{shared_ ? shared_->token : 0, getpid(), file};
    bool all = shared_ != nullptr, one = false;
    for (int peer = first + 1; peer < last; ++peer) {
      comm.exchange(ctx, peer, bytes_of(memory_file), peer, bytes_of(one));
      all &= one;
    }
    if (file >= 0) close(file);
    check(all, "[link] the ranks {} to {} of one node cannot share memory (ranks-per-node is {})",
          first, last - 1, last - first);
    return;
  }
  MemoryFile memory_file{};
  comm.receive(ctx, first, bytes_of(memory_file));
  const std::string path = fmt::format("/proc/{}/fd/{}", memory_file.process, memory_file.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  shared_ = static_cast<Shared*>(map(file, sizeof(Shared)));
  if (file >= 0) close(file);
  const bool same = shared_ && shared_->token == memory_file.token;
  comm.send(ctx, first, std::as_bytes(std::span(&same, 1)));
  check(same, "[link] ranks {} and {} are to share a node but do not run on one machine", first,
        comm.rank());
}

NodePorts::~NodePorts() {
  if (shared_) munmap(shared_, sizeof(Shared));
}

double NodePorts::book(Direction direction, double ready, double seconds) {
  const Lock lock(shared_->mutex);
  return shared_->ports[direction].book(ready, seconds);
}

}  // namespace tw
