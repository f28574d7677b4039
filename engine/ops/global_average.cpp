#include "engine/ops/global_average.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/global_average.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

/// Channels of one task.
inline constexpr size_t kAveraged = 64;

/// y[c] = mean over pixels of x[pixel * stride + c], c < n <= kAveraged.
template <class T>
void mean(const T* x, size_t pixels, size_t stride, size_t n, T* y) {
  float acc[kAveraged] = {};
  for (size_t p = 0; p < pixels; ++p)
    for (size_t c = 0; c < n; ++c) acc[c] += load(x[p * stride + c]);
  for (size_t c = 0; c < n; ++c) store(y[c], acc[c] / static_cast<float>(pixels));
}

/// The gradient of mean.
template <class T>
void spread(const T* dy, size_t pixels, size_t channels, T* dx) {
  const float scale = 1.0f / static_cast<float>(pixels);
#pragma GCC ivdep
  for (size_t c = 0; c < channels; ++c) store(dx[c], scale * load(dy[c]));
  for (size_t p = 1; p < pixels; ++p)
#pragma GCC ivdep
    for (size_t c = 0; c < channels; ++c) dx[p * channels + c] = dx[c];
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

using baseline::kAveraged;

namespace {

void check_tensors(const Tensor& x, const Tensor& y) {
  check_activation("global_average", "x", x);
  check(x.shape.rank() == 4, "[global_average] x is {}; expected (N, H, W, C)", x.shape);
  check_dtype("global_average", "y", y, x.dtype);
  check_shape("global_average", "y", y, {x.shape[0], x.shape[3]});
}

}  // namespace

void global_average_forward(Context& ctx, const Tensor& x, const Tensor& y) {
  check_tensors(x, y);
  global_average_forward_dispatch(ctx.device(), ctx, x, y);
}

void global_average_backward(Context& ctx, const Tensor& dy, const Tensor& dx) {
  check_tensors(dx, dy);
  global_average_backward_dispatch(ctx.device(), ctx, dy, dx);
}

namespace {

void forward_cpu(Context& ctx, const Tensor& x, const Tensor& y) {
  const auto pixels = static_cast<size_t>(x.shape[1] * x.shape[2]);
  const auto channels = static_cast<size_t>(x.shape[3]);
  with_activation_type(x.dtype, [&]<class T>() {
    const auto from = x.as<T>(), to = y.as<T>();
    parallel_for(ctx, static_cast<size_t>(x.shape[0]), 1, [&](size_t n, size_t) {
      for (size_t c = 0; c < channels; c += kAveraged)
        TW_KERNEL(mean, from.data() + n * pixels * channels + c, pixels, channels,
                  std::min(kAveraged, channels - c), to.data() + n * channels + c);
    });
  });
}

void backward_cpu(Context& ctx, const Tensor& dy, const Tensor& dx) {
  const auto pixels = static_cast<size_t>(dx.shape[1] * dx.shape[2]);
  const auto channels = static_cast<size_t>(dx.shape[3]);
  with_activation_type(dx.dtype, [&]<class T>() {
    const auto from = dy.as<T>(), to = dx.as<T>();
    parallel_for(ctx, static_cast<size_t>(dx.shape[0]), 1, [&](size_t n, size_t) {
      TW_KERNEL(spread, from.data() + n * channels, pixels, channels,
                to.data() + n * pixels * channels);
    });
  });
}

const bool global_average_registered =
    global_average_forward_dispatch.add(Device::cpu, forward_cpu) &&
    global_average_backward_dispatch.add(Device::cpu, backward_cpu);

}  // namespace
}  // namespace tw::ops
#endif
