// The conversions of the CPU with integer arithmetic, since fp16 of the host has no device code.
// Equal bits, except that NaNs of fp16 may have another payload.
#include <bit>

#include "engine/core/dtype.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/half.h"

namespace tw::ops {
namespace {

constexpr uint32_t kSign = 0x80000000u;

__device__ uint16_t fp16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits & kSign) >> 16;
  uint32_t magnitude = bits & ~kSign;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 2^16 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: the addition rounds to a multiple of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);  // to nearest even
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

__device__ float fp16_value(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
  uint32_t bits = magnitude + 0x38000000u;
  if (magnitude >= 0x0f800000u) bits += 0x38000000u;  // infinity or NaN
  if (magnitude < 0x00800000u)                        // zero or below 2^-14
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + 0x38800000u) - 0x1p-14f);
  return std::bit_cast<float>(sign | bits);
}

struct Narrow {
  ValueFormat format;
  const float* x;
  uint16_t* y;
  __device__ void operator()(int64_t i) const {
    y[i] = format == ValueFormat::fp16 ? fp16_bits(x[i]) : bf16(x[i]).bits;
  }
};
struct Widen {
  ValueFormat format;
  const uint16_t* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = format == ValueFormat::fp16 ? fp16_value(x[i])
                                       : std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16);
  }
};

void narrow_cuda(Context& ctx, ValueFormat format, std::span<const float> x,
                 std::span<std::byte> y) {
  cuda::for_each(ctx, "narrow", std::ssize(x),
                 Narrow{format, x.data(), reinterpret_cast<uint16_t*>(y.data())});
}
void widen_cuda(Context& ctx, ValueFormat format, std::span<const std::byte> x,
                std::span<float> y) {
  cuda::for_each(ctx, "widen", std::ssize(y),
                 Widen{format, reinterpret_cast<const uint16_t*>(x.data()), y.data()});
}

const bool half_registered =
    narrow_dispatch.add(Device::cuda, narrow_cuda) && widen_dispatch.add(Device::cuda, widen_cuda);

}  // namespace
}  // namespace tw::ops
