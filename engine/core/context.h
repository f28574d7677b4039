// Context: what one rank computes with. No globals: a rank can be a process, a thread or a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/core/dispatch.h"

namespace tw {

/// Handles of the device's libraries (oneDNN engine and stream; CUDA stream, cuBLAS, cuDNN).
/// Each device derives its own in an implementation header; only op bodies look inside.
class DeviceHandles {
 public:
  virtual ~DeviceHandles() = default;
  /// Waits until everything queued on the device is done.
  virtual void synchronize() {}
  /// How often it has waited so far, in synchronize() or inside an op.
  virtual uint64_t synchronizations() const { return 0; }
  /// Makes the calling thread one that computes here.
  virtual void bind_thread() {}
};

/// By the number of the device among its kind; -1: whichever it takes.
extern DispatchTable<std::unique_ptr<DeviceHandles>(int)> device_handles_dispatch;
/// What this machine lacks to compute on a device; empty when it lacks nothing.
extern DispatchTable<std::string()> missing_dispatch;
std::string what_is_missing(Device device);

/// How a device may compute, where it has a choice.
struct MathMode {
  bool tf32 = false;           ///< a GPU may round the factors of f32 products to 10 bits
  bool deterministic = false;  ///< the same bits every time; algorithms are not picked by the clock
};

class Context {
 public:
  /// `threads`: CPU threads of this rank. They are part of "same seed, same bits".
  /// `gpu`: the number of the GPU; -1: ranks that mpirun started on one machine take turns.
  explicit Context(Device device = Device::cpu, int threads = 1, int gpu = -1);

  Device device() const { return device_; }
  int threads() const { return threads_; }
  /// As it was given: what a second context on the same device is made with.
  int gpu() const { return gpu_; }

  /// Sets this thread's OpenMP width and device. A new std::thread does not inherit them: every
  /// thread that computes for this rank calls this first.
  void bind_thread() const;

  /// To be set before anything is planned.
  void set_math(MathMode math) { math_ = math; }
  MathMode math() const { return math_; }
  /// The algorithms that measurements picked, by shape. What is there already is used unmeasured,
  /// so that a resumed run goes on with those it began with.
  std::map<std::string, std::string>& tuning_cache() { return tuning_cache_; }

  /// Memory any op may use during its own call; the plan sizes it.
  std::span<std::byte> scratch() const { return scratch_; }
  void set_scratch(std::span<std::byte> scratch) { scratch_ = scratch; }

  template <class Handles>
  Handles& handles() const {
    return static_cast<Handles&>(*handles_);
  }
  void synchronize() const { handles_->synchronize(); }
  uint64_t synchronizations() const { return handles_->synchronizations(); }

 private:
  Device device_;
  int threads_, gpu_;
  std::span<std::byte> scratch_;
  MathMode math_;
  std::map<std::string, std::string> tuning_cache_;
  std::unique_ptr<DeviceHandles> handles_;
};

}  // namespace tw
