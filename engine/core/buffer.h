// Buffer: owns one aligned block of memory on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/tensor.h"

namespace tw {

/// Allocate and free device memory.
inline constinit DispatchTable<void*(size_t)> allocate_dispatch{"buffer"};
inline constinit DispatchTable<void(void*)> release_dispatch{"buffer"};
/// Allocate and free pinned host memory, which a device copies from and to without the CPU.
inline constinit DispatchTable<void*(size_t)> pin_dispatch{"buffer"};
inline constinit DispatchTable<void(void*)> unpin_dispatch{"buffer"};

/// Free bytes on a device.
size_t free_memory(Device device);
inline constinit DispatchTable<size_t()> free_memory_dispatch{"buffer"};

/// Deleter of Buffer: returns memory to its device, or to the host if it is pinned.
struct ReleaseMemory {
  Device device = Device::cpu;
  bool pinned = false;  // host memory
  void operator()(std::byte* memory) const {
    (pinned ? unpin_dispatch : release_dispatch)(device, memory);
  }
};

/// An allocation failed.
class OutOfMemory : public Fault {
 public:
  using Fault::Fault;
};

class Buffer {
 public:
  Buffer() = default;
  /// `bytes` of zeroed memory, 64-byte aligned. Throws OutOfMemory.
  Buffer(Device device, size_t bytes);
  /// The same in pinned host memory, which `device` copies from and to while it computes. Pinned
  /// memory is never swapped out: use it for buffers that are copied in every step.
  static Buffer pinned(Device device, size_t bytes);
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  /// Becomes a buffer of `bytes` of the device, without what it held, unless it has as many there.
  void grow(Device device, size_t bytes) {
    if (bytes_ < bytes || memory_.get_deleter().device != device) *this = Buffer(device, bytes);
  }

  std::byte* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  /// A tensor over the bytes from `offset` on; throws logic_error when it exceeds the buffer.
  Tensor tensor(Shape shape, DType dtype, size_t offset = 0) const;
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), bytes_ / sizeof(T)};
  }

 private:
  Buffer(void* memory, size_t bytes, ReleaseMemory release)
      : memory_(static_cast<std::byte*>(memory), release), bytes_(bytes) {}

  std::unique_ptr<std::byte[], ReleaseMemory> memory_;
  size_t bytes_ = 0;
};

}  // namespace tw
