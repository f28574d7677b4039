#include "engine/core/buffer.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/core/error.h"

namespace tw {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

void* allocate_cpu(size_t bytes) {
  // long vectors are read in every step, which is much faster on huge pages
  const bool huge = bytes >= 2 * kHugePage;
  const size_t alignment = huge ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  check<OutOfMemory>(memory != nullptr, "[buffer] out of memory: {} bytes requested", bytes);
#if defined(MADV_HUGEPAGE)
  if (huge) ::madvise(memory, rounded, MADV_HUGEPAGE);  // optional
#endif
  std::memset(memory, 0, rounded);
  return memory;
}

size_t free_cpu() {
  return static_cast<size_t>(::sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

const bool buffer_registered = free_memory_dispatch.add(Device::cpu, free_cpu) &&
                               allocate_dispatch.add(Device::cpu, allocate_cpu) &&
                               release_dispatch.add(Device::cpu, std::free) &&
                               pin_dispatch.add(Device::cpu, allocate_cpu) &&
                               unpin_dispatch.add(Device::cpu, std::free);

}  // namespace

size_t free_memory(Device device) { return free_memory_dispatch(device); }

Buffer::Buffer(Device device, size_t bytes)
    : Buffer(bytes == 0 ? nullptr : allocate_dispatch(device, bytes), bytes, {.device = device}) {}

Buffer Buffer::pinned(Device device, size_t bytes) {
  return {bytes == 0 ? nullptr : pin_dispatch(device, bytes),
          bytes,
          {.device = device, .pinned = true}};
}

Tensor Buffer::tensor(Shape shape, DType dtype, size_t offset) const {
  const auto [device, pinned] = memory_.get_deleter();
  Tensor result{data(), shape, dtype, pinned ? Device::cpu : device};
  check<std::logic_error>(offset <= bytes_ && result.bytes() <= bytes_ - offset,
                          "[buffer] {} at {} exceeds {} bytes", shape, offset, bytes_);
  result.data = data() + offset;
  return result;
}

}  // namespace tw
