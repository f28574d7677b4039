#include "engine/core/copy.h"

#include <cstring>

namespace tw {

void copy(Context& ctx, const Tensor& x, const Tensor& y) {
  check<std::logic_error>(x.shape == y.shape && x.dtype == y.dtype, "[copy] {} {} to {} {}",
                          name(x.dtype), x.shape, name(y.dtype), y.shape);
  for (const Tensor* t : {&x, &y})
    check<std::logic_error>(t->device == Device::cpu || t->device == ctx.device(),
                            "[copy] a tensor on {} in a context on {}", name(t->device),
                            name(ctx.device()));
  if (x.bytes() > 0) copy_dispatch(ctx.device(), ctx, x, y);
}

void copy_bytes(Context& ctx, std::span<const std::byte> x, std::span<std::byte> y) {
  const auto tensor = [&](const std::byte* data, size_t bytes) {
    return Tensor{const_cast<std::byte*>(data),
                  {static_cast<int64_t>(bytes)},
                  DType::u8,
                  bytes > 0 ? device_of(ctx, data) : Device::cpu};
  };
  const Tensor from = tensor(x.data(), x.size()), to = tensor(y.data(), y.size());
  if (from.device == Device::cpu && to.device == Device::cpu && x.size() == y.size()) {
    if (!x.empty()) std::memcpy(y.data(), x.data(), x.size());  // no device involved
  } else {
    copy(ctx, from, to);
  }
}

Device device_of(const Context& ctx, const void* data) {
  return ctx.device() == Device::cpu ? Device::cpu : locate_dispatch(ctx.device(), data);
}

namespace {

Tensor vector(std::span<const float> x, Device device) {
  return {const_cast<float*>(x.data()), {static_cast<int64_t>(x.size())}, DType::f32, device};
}

void copy_cpu(Context&, const Tensor& x, const Tensor& y) {
  std::memcpy(y.data, x.data, x.bytes());
}

const bool copy_registered = copy_dispatch.add(Device::cpu, copy_cpu);

}  // namespace

void copy_to_device(Context& ctx, std::span<const float> host, std::span<float> device) {
  copy(ctx, vector(host, Device::cpu), vector(device, ctx.device()));
}

void copy_to_host(Context& ctx, std::span<const float> device, std::span<float> host) {
  copy(ctx, vector(device, ctx.device()), vector(host, Device::cpu));
}

float value_at(Context& ctx, const float* address) {
  float value = 0;
  copy_to_host(ctx, {address, 1}, {&value, 1});
  return value;
}

HostFloats::HostFloats(Context* ctx, std::span<float> device) : ctx_(ctx), device_(device) {
  if (ctx == nullptr) return;
  copy_.resize(device.size());
  copy_to_host(*ctx, device_, copy_);
}

void HostFloats::write() {
  if (!copy_.empty()) copy_to_device(*ctx_, copy_, device_);
}

}  // namespace tw
