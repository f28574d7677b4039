#include "engine/ops/half.h"

#include <cstring>

#include "engine/core/dtype.h"
#include "engine/core/parallel.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/half.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

// GCC 12 converts fp16 one value after the other, hence the intrinsics.

template <class T>
void narrow(const float* x, size_t n, std::byte* y) {
  size_t i = 0;
#if TW_VECTOR_BYTES >= 32
  if constexpr (std::is_same_v<T, fp16>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i * sizeof(T)),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) {
    const T value(x[i]);
    std::memcpy(y + i * sizeof value, &value, sizeof value);
  }
}
template <class T>
void widen(const std::byte* x, size_t n, float* y) {
  size_t i = 0;
#if TW_VECTOR_BYTES >= 32
  if constexpr (std::is_same_v<T, fp16>)
    for (; i + 8 <= n; i += 8) {
      const auto* const from = reinterpret_cast<const __m128i*>(x + i * sizeof(T));
      _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(from)));
    }
#endif
  for (; i < n; ++i) {
    T value;
    std::memcpy(&value, x + i * sizeof value, sizeof value);
    y[i] = static_cast<float>(value);
  }
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

void narrow(Context& ctx, ValueFormat format, std::span<const float> x, std::span<std::byte> y) {
  check(y.size() == 2 * x.size(), "[narrow] {} bytes for {} elements", y.size(), x.size());
  narrow_dispatch(ctx.device(), ctx, format, x, y);
}

void widen(Context& ctx, ValueFormat format, std::span<const std::byte> x, std::span<float> y) {
  check(x.size() == 2 * y.size(), "[widen] {} bytes for {} elements", x.size(), y.size());
  widen_dispatch(ctx.device(), ctx, format, x, y);
}

namespace {

void narrow_cpu(Context& ctx, ValueFormat format, std::span<const float> x,
                std::span<std::byte> y) {
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    narrow(format, x.subspan(begin, end - begin), y.data() + 2 * begin);
  });
}

void widen_cpu(Context& ctx, ValueFormat format, std::span<const std::byte> x, std::span<float> y) {
  parallel_for(ctx, y.size(), kElementGrain, [&](size_t begin, size_t end) {
    widen(format, x.data() + 2 * begin, y.subspan(begin, end - begin));
  });
}

const bool half_registered =
    narrow_dispatch.add(Device::cpu, narrow_cpu) && widen_dispatch.add(Device::cpu, widen_cpu);

}  // namespace

void narrow(ValueFormat format, std::span<const float> x, std::byte* y) {
  if (format == ValueFormat::fp16)
    TW_KERNEL(narrow<fp16>, x.data(), x.size(), y);
  else
    TW_KERNEL(narrow<bf16>, x.data(), x.size(), y);
}
void widen(ValueFormat format, const std::byte* x, std::span<float> y) {
  if (format == ValueFormat::fp16)
    TW_KERNEL(widen<fp16>, x, y.size(), y.data());
  else
    TW_KERNEL(widen<bf16>, x, y.size(), y.data());
}

}  // namespace tw::ops
#endif
