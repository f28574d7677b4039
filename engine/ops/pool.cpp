#include "engine/ops/pool.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/pool_kernels.h"

namespace tw::ops {

Shape PoolParams::output(const Shape& x) const {
  // a position inside a window is stored in one byte
  check(kernel >= 1 && kernel <= 16, "[pool] kernel is {}; expected 1 to 16", kernel);
  check(stride >= 1, "[pool] stride is {}; expected at least 1", stride);
  // otherwise a window could be entirely in the padding and have no maximum
  check(padding >= 0 && 2 * padding <= kernel, "[pool] padding is {}; expected 0 to {}", padding,
        kernel / 2);
  check(x.rank() == 4 && x[1] + 2 * padding >= kernel && x[2] + 2 * padding >= kernel,
        "[pool] x is {}; too small for a window of {}", x, kernel);
  return {x[0], (x[1] + 2 * padding - kernel) / stride + 1,
          (x[2] + 2 * padding - kernel) / stride + 1, x[3]};
}

namespace {

void check_tensors(const PoolParams& params, const Tensor& x, const Tensor& y,
                   const Tensor& argmax) {
  check_activation("pool", "x", x);
  check_dtype("pool", "y", y, x.dtype);
  check_shape("pool", "y", y, params.output(x.shape));
  if (params.kind == PoolKind::average) return;
  check_dtype("pool", "argmax", argmax, DType::u8);
  check_shape("pool", "argmax", argmax, y.shape);
}

}  // namespace

void pool_forward(Context& ctx, const PoolParams& params, const Tensor& x, const Tensor& y,
                  const Tensor& argmax) {
  check_tensors(params, x, y, argmax);
  pool_forward_dispatch(ctx.device(), ctx, params, x, y, argmax);
}

void pool_backward(Context& ctx, const PoolParams& params, const Tensor& dy, const Tensor& argmax,
                   const Tensor& dx) {
  check_tensors(params, dx, dy, argmax);
  pool_backward_dispatch(ctx.device(), ctx, params, dy, argmax, dx);
}

namespace {

using pool::Taps;

/// Half-open range of indices.
struct Range {
  int64_t begin, end;
};

/// Calls row(r) for r in [0, rows); a row is one line of pixels.
template <class Row>
void for_rows(Context& ctx, int64_t rows, const Row& row) {
  parallel_for(ctx, static_cast<size_t>(rows), 4, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) row(static_cast<int64_t>(r));
  });
}

/// The positions of window p whose index, p * stride - padding + position, is inside [0, n).
Range window_inside(const PoolParams& params, int64_t p, int64_t n) {
  const int64_t start = p * params.stride - params.padding;
  return {std::max<int64_t>(0, -start), std::min(params.kernel, n - start)};
}

/// Windows p in [0, outputs) that cover index i.
Range windows_over(const PoolParams& params, int64_t i, int64_t outputs) {
  const int64_t shifted = i + params.padding;
  const int64_t first = shifted < params.kernel ? 0 : (shifted - params.kernel) / params.stride + 1;
  return {first, std::min(outputs, shifted / params.stride + 1)};
}

void pool_forward_cpu(Context& ctx, const PoolParams& params, const Tensor& x, const Tensor& y,
                      const Tensor& argmax) {
  const int64_t height = x.shape[1], width = x.shape[2], channels = x.shape[3];
  const int64_t out_height = y.shape[1], out_width = y.shape[2];
  with_activation_type(x.dtype, [&]<class T>() {
    const T* const from = x.as<T>().data();
    T* const to = y.as<T>().data();
    for_rows(ctx, y.shape[0] * out_height, [&](int64_t r) {
      const int64_t n = r / out_height, p = r % out_height;
      const Range down = window_inside(params, p, height);
      for (int64_t q = 0; q < out_width; ++q) {
        const Range across = window_inside(params, q, width);
        Taps<T> taps;
        for (int64_t i = down.begin; i < down.end; ++i)
          for (int64_t j = across.begin; j < across.end; ++j) {
            const int64_t h = p * params.stride - params.padding + i;
            const int64_t w = q * params.stride - params.padding + j;
            taps.add(from + ((n * height + h) * width + w) * channels, i * params.kernel + j);
          }
        const int64_t pixel = (r * out_width + q) * channels;
        if (params.kind == PoolKind::max)
          TW_KERNEL(pool_maximum, taps, channels, to + pixel, argmax.as<uint8_t>().data() + pixel);
        else
          TW_KERNEL(pool_sum, taps, channels,
                    1.0f / static_cast<float>(params.kernel * params.kernel), to + pixel);
      }
    });
  });
}

// each input pixel gathers from the windows that cover it, so no two tasks write one pixel
void pool_backward_cpu(Context& ctx, const PoolParams& params, const Tensor& dy,
                       const Tensor& argmax, const Tensor& dx) {
  const int64_t height = dx.shape[1], width = dx.shape[2], channels = dx.shape[3];
  const int64_t out_height = dy.shape[1], out_width = dy.shape[2];
  with_activation_type(dx.dtype, [&]<class T>() {
    const T* const from = dy.as<T>().data();
    T* const to = dx.as<T>().data();
    for_rows(ctx, dx.shape[0] * height, [&](int64_t r) {
      const int64_t n = r / height, h = r % height;
      const Range down = windows_over(params, h, out_height);
      for (int64_t w = 0; w < width; ++w) {
        const Range across = windows_over(params, w, out_width);
        Taps<T> taps;
        for (int64_t p = down.begin; p < down.end; ++p)
          for (int64_t q = across.begin; q < across.end; ++q) {
            const int64_t i = h - (p * params.stride - params.padding);
            const int64_t j = w - (q * params.stride - params.padding);
            taps.add(from + ((n * out_height + p) * out_width + q) * channels,
                     i * params.kernel + j);
          }
        T* const pixel = to + (r * width + w) * channels;
        if (params.kind == PoolKind::max)
          TW_KERNEL(pool_sum_where, taps, from, argmax.as<uint8_t>().data(), channels, pixel);
        else
          TW_KERNEL(pool_sum, taps, channels,
                    1.0f / static_cast<float>(params.kernel * params.kernel), pixel);
      }
    });
  });
}

const bool pool_registered = pool_forward_dispatch.add(Device::cpu, pool_forward_cpu) &&
                             pool_backward_dispatch.add(Device::cpu, pool_backward_cpu);

}  // namespace
}  // namespace tw::ops
