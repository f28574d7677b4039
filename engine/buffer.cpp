#include "engine/buffer.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/error.h"

namespace tw {

constinit Bodies<void*(size_t)> allocate_bodies{"buffer"};
constinit Bodies<void(void*)> release_bodies{"buffer"};

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

void* allocate_cpu(size_t bytes) {
  // long vectors are streamed through in every step: on huge pages that is much faster
  const bool huge = bytes >= 2 * kHugePage;
  const size_t alignment = huge ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  check<Fault>(memory != nullptr, "[buffer] no memory left for {} bytes", bytes);
#if defined(MADV_HUGEPAGE)
  if (huge) ::madvise(memory, rounded, MADV_HUGEPAGE);  // a wish; without it all still works
#endif
  std::memset(memory, 0, rounded);
  return memory;
}

const bool registered =
    allocate_bodies.add(Device::cpu, allocate_cpu) && release_bodies.add(Device::cpu, std::free);

}  // namespace

Buffer::Buffer(Device device, size_t bytes)
    : memory_(bytes == 0 ? nullptr : static_cast<std::byte*>(allocate_bodies(device, bytes)),
              ReleaseMemory{device}),
      bytes_(bytes) {}

Tensor Buffer::tensor(Shape shape, DType dtype, size_t offset) const {
  Tensor result{data(), shape, dtype, memory_.get_deleter().device};
  check<std::logic_error>(offset <= bytes_ && result.bytes() <= bytes_ - offset,
                          "[buffer] {} at {} exceeds {} bytes", shape, offset, bytes_);
  result.data = data() + offset;
  return result;
}

}  // namespace tw
