// Buffer: owns one aligned block of memory on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/tensor.h"

namespace tw {

/// Allocates and frees device memory; CUDA adds its own bodies.
extern DispatchTable<void*(size_t)> allocate_dispatch;
extern DispatchTable<void(void*)> release_dispatch;
/// Memory of the host that a device copies from and to by itself (pinned).
extern DispatchTable<void*(size_t)> pin_dispatch;
extern DispatchTable<void(void*)> unpin_dispatch;

/// Bytes that can still be had on a device.
size_t free_memory(Device device);
extern DispatchTable<size_t()> free_memory_dispatch;

struct ReleaseMemory {
  Device device = Device::cpu;
  bool pinned = false;  // the memory is the host's
  void operator()(std::byte* memory) const {
    (pinned ? unpin_dispatch : release_dispatch)(device, memory);
  }
};

/// The fault of memory that is wanted and not there.
class OutOfMemory : public Fault {
 public:
  using Fault::Fault;
};

class Buffer {
 public:
  Buffer() = default;
  /// `bytes` of zeroed memory, 64-byte aligned; throws OutOfMemory when there is none left.
  Buffer(Device device, size_t bytes);
  /// The same in the host's memory, which `device` copies from and to beside other work. The system
  /// cannot use that memory otherwise: for what is copied again and again.
  static Buffer pinned(Device device, size_t bytes);
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  std::byte* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  /// A tensor over the start of the buffer.
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
