// Copies between the memories of the host and of a device.
#pragma once

#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw {

/// Copies x to y (equal shape and dtype) after the work queued on ctx's device. Either may be host
/// memory; the call then returns when the copy is done.
void copy(Context& ctx, const Tensor& x, const Tensor& y);

/// Copies x to y, of equal length; each may be host or device memory.
void copy_bytes(Context& ctx, std::span<const std::byte> x, std::span<std::byte> y);

/// The device whose memory `data` points to: ctx's, or cpu for host memory, pinned or not.
Device device_of(const Context& ctx, const void* data);

// Copy vectors of equal length; the call returns when the copy is done.
void copy_to_device(Context& ctx, std::span<const float> host, std::span<float> device);
void copy_to_host(Context& ctx, std::span<const float> device, std::span<float> host);
/// Reads one float of ctx's device after the work queued there.
float value_at(Context& ctx, const float* address);

/// Host view of floats on ctx's device. On the CPU it is the memory itself; on a GPU it is a copy
/// that the constructor fetches and write() stores.
class HostFloats {
 public:
  HostFloats(Context& ctx, std::span<float> device)
      : HostFloats(ctx.device() == Device::cpu ? nullptr : &ctx, device) {}
  /// `ctx` null: `device` is host memory.
  HostFloats(Context* ctx, std::span<float> device);

  std::span<float> span() { return copy_.empty() ? device_ : std::span(copy_); }
  std::span<const float> span() const { return copy_.empty() ? device_ : std::span(copy_); }
  /// Stores changes made through span().
  void write();

 private:
  Context* ctx_;
  std::span<float> device_;
  std::vector<float> copy_;
};

inline constinit DispatchTable<void(Context&, const Tensor&, const Tensor&)> copy_dispatch{"copy"};
inline constinit DispatchTable<Device(const void*)> locate_dispatch{"copy"};

}  // namespace tw
