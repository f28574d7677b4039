#include "tests/emulator/memory.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

namespace tw::emulator {

namespace {

struct Arena {
  std::recursive_mutex mutex;
  std::byte* base = nullptr;
  size_t used = 0;                            ///< bytes from base that may be in use
  std::map<size_t, size_t> pieces;            ///< bytes by offset
  std::map<const std::byte*, size_t> pinned;  ///< bytes by address
  size_t taken = 0;
  int open = 0;

  /// Handler of SIGSEGV: prints the cause of an access from host code.
  static void report_access(int, siginfo_t* info, void*);

  Arena() {
    void* const all = mmap(nullptr, kDeviceBytes * 2, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) std::abort();
    base = static_cast<std::byte*>(all);
    madvise(all, kDeviceBytes * 2, MADV_HUGEPAGE);  // protect() takes time for each page
    struct sigaction action {};
    action.sa_sigaction = report_access;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;  // the access is repeated and ends the process
    sigaction(SIGSEGV, &action, nullptr);
  }

  void protect() const {
    if (used > 0 && mprotect(base, used, open > 0 ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
      std::abort();
  }
};

Arena& arena() {
  static Arena* const all = new Arena;  // outlives every static that holds memory
  return *all;
}

void Arena::report_access(int, siginfo_t* info, void*) {
  constexpr std::string_view text = "[emulator] host code accesses device memory\n";
  if (is_device_memory(info->si_addr)) (void)!write(STDERR_FILENO, text.data(), text.size());
}

constexpr unsigned char kGap = 0xc3;  ///< byte between two allocations

size_t whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page) / page * page;  // at least one byte between two allocations
}

template <class Pieces, class Key>
size_t left_in_piece(const Pieces& pieces, Key at) {
  auto piece = pieces.upper_bound(at);
  if (piece == pieces.begin()) return 0;
  --piece;
  const auto inside = static_cast<size_t>(at - piece->first);
  return inside < piece->second ? piece->second - inside : 0;
}

}  // namespace

bool is_device_memory(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= arena().base && at < arena().base + kDeviceBytes * 2;
}

Location locate(const void* address) {
  Arena& all = arena();
  const std::lock_guard lock(all.mutex);
  const auto* const at = static_cast<const std::byte*>(address);
  if (is_device_memory(at))
    return {Place::device, left_in_piece(all.pieces, static_cast<size_t>(at - all.base))};
  const size_t pinned = left_in_piece(all.pinned, at);
  return {pinned > 0 ? Place::pinned : Place::host, pinned};
}

void* allocate_device(size_t bytes) {
  Arena& all = arena();
  const std::lock_guard lock(all.mutex);
  if (bytes > kDeviceBytes - all.taken) return nullptr;
  size_t offset = 0;
  for (const auto& [begin, size] : all.pieces) {
    if (begin - offset >= whole_pages(bytes)) break;
    offset = begin + whole_pages(size);
  }
  if (offset + whole_pages(bytes) > kDeviceBytes * 2) return nullptr;
  all.pieces[offset] = bytes;
  all.taken += bytes;
  all.used = std::max(all.used, offset + whole_pages(bytes));
  const Access access;
  constexpr size_t kFilled = size_t{1} << 20;                      // unused pages take no memory
  std::memset(all.base + offset, 0xff, std::min(bytes, kFilled));  // NaN as a float
  std::memset(all.base + offset + bytes, kGap, whole_pages(bytes) - bytes);
  return all.base + offset;
}

void* allocate_pinned(size_t bytes) {
  Arena& all = arena();
  const std::lock_guard lock(all.mutex);
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, whole_pages(bytes)));
  if (memory != nullptr) all.pinned[memory] = bytes;
  return memory;
}

bool release(void* memory) {
  Arena& all = arena();
  const std::lock_guard lock(all.mutex);
  auto* const at = static_cast<std::byte*>(memory);
  if (all.pinned.erase(at) > 0) {
    std::free(memory);
    return true;
  }
  const auto piece = all.pieces.find(static_cast<size_t>(at - all.base));
  if (at < all.base || piece == all.pieces.end()) return false;
  const size_t bytes = piece->second;
  {
    const Access access;
    std::byte* const gap = at + bytes;
    if (std::any_of(gap, at + whole_pages(bytes),
                    [](std::byte b) { return b != std::byte{kGap}; })) {
      fmt::print(stderr,
                 "[emulator] a write past the end of an allocation of {} bytes of device memory\n",
                 bytes);
      std::abort();
    }
  }
  all.taken -= bytes;
  all.pieces.erase(piece);
  madvise(at, whole_pages(bytes), MADV_DONTNEED);
  return true;
}

size_t device_bytes_free() {
  const std::lock_guard lock(arena().mutex);
  return kDeviceBytes - arena().taken;
}

Access::Access() {
  arena().mutex.lock();
  if (arena().open++ == 0) arena().protect();
}

Access::~Access() {
  if (--arena().open == 0) arena().protect();
  arena().mutex.unlock();
}

}  // namespace tw::emulator
