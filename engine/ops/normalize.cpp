#include "engine/ops/normalize.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/normalize.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

template <class T>
void normalize(const uint8_t* x, const float* scale, const float* shift, T* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) store(y[i], static_cast<float>(x[i]) * scale[i] + shift[i]);
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

void normalize(Context& ctx, const Tensor& x, std::span<const float> mean,
               std::span<const float> deviation, const Tensor& y) {
  check_dtype("normalize", "x", x, DType::u8);
  check(x.shape.rank() > 0, "[normalize] x has no channels");
  check_activation("normalize", "y", y);
  check_shape("normalize", "y", y, x.shape);
  const auto channels = static_cast<size_t>(x.shape[x.shape.rank() - 1]);
  check(channels >= 1 && channels <= 256, "[normalize] x has {} channels; expected 1 to 256",
        channels);
  check(mean.size() == channels && deviation.size() == channels,
        "[normalize] {} means and {} deviations for {} channels", mean.size(), deviation.size(),
        channels);
  normalize_dispatch(ctx.device(), ctx, x, mean, deviation, y);
}

namespace {

/// Coefficients are repeated over many pixels, so that 3 channels still fill whole vectors.
constexpr size_t kWidth = 768;

void normalize_cpu(Context& ctx, const Tensor& x, std::span<const float> mean,
                   std::span<const float> deviation, const Tensor& y) {
  const size_t channels = mean.size(), width = kWidth / channels * channels;
  float scale[kWidth], shift[kWidth];
  for (size_t i = 0; i < width; ++i) {
    const size_t c = i % channels;
    scale[i] = 1.0f / (255.0f * deviation[c]);
    shift[i] = -mean[c] / deviation[c];
  }
  with_activation_type(y.dtype, [&]<class T>() {
    const auto from = x.as<uint8_t>();
    const auto to = y.as<T>();
    parallel_for(ctx, from.size(), 32 * width, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; i += width)
        TW_KERNEL(normalize, from.data() + i, scale, shift, to.data() + i,
                  std::min(width, end - i));
    });
  });
}

const bool normalize_registered = normalize_dispatch.add(Device::cpu, normalize_cpu);

}  // namespace
}  // namespace tw::ops
#endif
