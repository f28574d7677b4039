// Buffer: owns one aligned block of memory on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/dispatch.h"
#include "engine/tensor.h"

namespace tw {

/// Allocates and frees device memory; CUDA adds its own bodies.
extern Bodies<void*(size_t)> allocate_bodies;
extern Bodies<void(void*)> release_bodies;

struct ReleaseMemory {
  Device device = Device::cpu;
  void operator()(std::byte* memory) const { release_bodies(device, memory); }
};

class Buffer {
 public:
  Buffer() = default;
  /// `bytes` of zeroed memory, 64-byte aligned; throws Fault when there is none left.
  Buffer(Device device, size_t bytes);
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
  std::unique_ptr<std::byte[], ReleaseMemory> memory_;
  size_t bytes_ = 0;
};

}  // namespace tw
