// Copies between the memories of the host and of a device.
#pragma once

#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw {

/// Copies x to y (equal shape and dtype), behind everything queued on ctx's device. Either may lie
/// on the host; the call then returns when the copy is done.
void copy(Context& ctx, const Tensor& x, const Tensor& y);

/// The same for bytes, wherever each of equally many lies.
void copy_bytes(Context& ctx, std::span<const std::byte> x, std::span<std::byte> y);

/// Where `data` lies: on ctx's device, or on the host, pinned or not.
Device device_of(const Context& ctx, const void* data);

// Vectors of equal length; the call returns when the copy is done. On the CPU both are the host's.
void copy_to_device(Context& ctx, std::span<const float> host, std::span<float> device);
void copy_to_host(Context& ctx, std::span<const float> device, std::span<float> host);
/// One float of ctx's device, behind everything queued there.
float value_at(Context& ctx, const float* place);

/// Floats of ctx's device as the host sees them: on the CPU the memory itself, elsewhere a copy,
/// fetched by the constructor and taken back by write().
class HostFloats {
 public:
  HostFloats(Context& ctx, std::span<float> device)
      : HostFloats(ctx.device() == Device::cpu ? nullptr : &ctx, device) {}
  /// Without a context `device` is memory of the host.
  HostFloats(Context* ctx, std::span<float> device);

  std::span<float> span() { return copy_.empty() ? device_ : std::span(copy_); }
  std::span<const float> span() const { return copy_.empty() ? device_ : std::span(copy_); }
  /// To be called after changing what span() shows.
  void write();

 private:
  Context* ctx_;
  std::span<float> device_;
  std::vector<float> copy_;
};

extern DispatchTable<void(Context&, const Tensor&, const Tensor&)> copy_dispatch;
extern DispatchTable<Device(const void*)> locate_dispatch;

}  // namespace tw
