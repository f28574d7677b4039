#include "engine/flat_copy.h"

#include "engine/copy.h"

namespace tw {

namespace {

Tensor vector(std::span<const float> x, Device device) {
  return {const_cast<float*>(x.data()), {static_cast<int64_t>(x.size())}, DType::f32, device};
}

}  // namespace

void copy_to_device(Context& ctx, std::span<const float> host, std::span<float> device) {
  copy(ctx, vector(host, Device::cpu), vector(device, ctx.device()));
}

void copy_to_host(Context& ctx, std::span<const float> device, std::span<float> host) {
  copy(ctx, vector(device, ctx.device()), vector(host, Device::cpu));
}

float value_at(Context& ctx, const float* place) {
  float value = 0;
  copy_to_host(ctx, {place, 1}, {&value, 1});
  return value;
}

}  // namespace tw
