// Context: what one rank computes with. No globals: a rank can be a process, a thread or a test.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/dispatch.h"

namespace tw {

/// Handles of the device's libraries (oneDNN engine and stream; CUDA stream, cuBLAS, cuDNN).
/// Each device derives its own in an implementation header; only op bodies look inside.
class Native {
 public:
  virtual ~Native() = default;
  /// Waits until everything queued on the device is done.
  virtual void synchronize() {}
};

extern Bodies<std::unique_ptr<Native>()> native_bodies;

class Context {
 public:
  /// `threads`: CPU threads of this rank. They are part of "same seed, same bits".
  explicit Context(Device device = Device::cpu, int threads = 1);

  Device device() const { return device_; }
  int threads() const { return threads_; }

  /// Sets this thread's OpenMP width. A new std::thread does not inherit it: every thread that
  /// computes for this rank calls this first.
  void bind_thread() const;

  /// Memory any op may use during its own call; the plan sizes it.
  std::span<std::byte> scratch() const { return scratch_; }
  void set_scratch(std::span<std::byte> scratch) { scratch_ = scratch; }

  template <class DeviceNative>
  DeviceNative& native() const {
    return static_cast<DeviceNative&>(*native_);
  }
  void synchronize() const { native_->synchronize(); }

 private:
  Device device_;
  int threads_;
  std::span<std::byte> scratch_;
  std::unique_ptr<Native> native_;
};

}  // namespace tw
