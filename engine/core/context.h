// Context: the device, threads and library handles of one rank. Nothing is global, so several ranks
// can run as threads of one process.
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
/// Each device derives its own in an implementation header; only implementations of ops use it.
class DeviceHandles {
 public:
  virtual ~DeviceHandles() = default;
  /// Blocks until all work queued on the device is done.
  virtual void synchronize() {}
  /// Number of waits for the device so far, in synchronize() or inside an op.
  virtual uint64_t synchronizations() const { return 0; }
  /// Prepares the calling thread to use the device.
  virtual void bind_thread() {}
};

/// Creates the handles of GPU number `gpu`; -1: the device chooses.
inline constinit DispatchTable<std::unique_ptr<DeviceHandles>(int)> device_handles_dispatch{
    "context"};
/// What this machine lacks to compute on a device, as text; empty when nothing is missing.
inline constinit DispatchTable<std::string()> missing_dispatch{"context"};
std::string what_is_missing(Device device);

/// Numerical options of a device.
struct MathMode {
  bool tf32 = false;           ///< a GPU may round factors of f32 products to TF32 (10 bits)
  bool deterministic = false;  ///< bitwise-reproducible GPU kernels, no autotuning
};

class Context {
 public:
  /// `threads`: CPU threads of this rank; their number may change the bits of a run.
  /// `gpu`: number of the GPU; -1: local rank modulo the number of GPUs. Throws UserError when the
  /// device is missing.
  explicit Context(Device device = Device::cpu, int threads = 1, int gpu = -1);

  Device device() const { return device_; }
  int threads() const { return threads_; }
  /// The number passed to the constructor, to create another context on the same device.
  int gpu() const { return gpu_; }

  /// Sets the calling thread's OpenMP width and current GPU. Every thread that computes for this
  /// rank calls this first: a new std::thread inherits neither.
  void bind_thread() const;

  /// Set before planning.
  void set_math(MathMode math) { math_ = math; }
  MathMode math() const { return math_; }
  /// Kernels chosen by autotuning, keyed by operation and shape. Cached entries are reused without
  /// timing, so a resumed run computes with the same kernels.
  std::map<std::string, std::string>& tuning_cache() { return tuning_cache_; }

  /// Working memory for the op that runs; the Planner sets its size.
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
