#include "engine/ops/subsample_pad.h"

#include <cstddef>
#include <cstring>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"

namespace tw::ops {

namespace {

/// `large` is the input of forward, `small` its output (fewer pixels, more channels).
void check_shapes(int64_t stride, const Tensor& large, const Tensor& small) {
  const Shape &x = large.shape, &y = small.shape;
  check(stride >= 1, "[subsample_pad] stride is {}; expected at least 1", stride);
  check_dtype("subsample_pad", "y", small, large.dtype);
  check(x.rank() == 4 && y.rank() == 4 && y[0] == x[0] && y[1] == (x[1] + stride - 1) / stride &&
            y[2] == (x[2] + stride - 1) / stride && y[3] >= x[3],
        "[subsample_pad] y is {}; x {} with stride {} does not fit", y, x, stride);
}

}  // namespace

void subsample_pad_forward(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y) {
  check_shapes(stride, x, y);
  subsample_pad_forward_dispatch(ctx.device(), ctx, stride, x, y);
}

void subsample_pad_backward(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx) {
  check_shapes(stride, dx, dy);
  subsample_pad_backward_dispatch(ctx.device(), ctx, stride, dy, dx);
}

namespace {

void forward_cpu(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y) {
  const int64_t height = x.shape[1], out_height = y.shape[1];
  const size_t element = size_of(x.dtype);
  const size_t pixel = static_cast<size_t>(x.shape[3]) * element;
  const size_t wide = static_cast<size_t>(y.shape[3]) * element;
  const size_t front = static_cast<size_t>((y.shape[3] - x.shape[3]) / 2) * element;
  const auto width = static_cast<size_t>(x.shape[2]), out_width = static_cast<size_t>(y.shape[2]);
  const auto* const source = static_cast<const std::byte*>(x.data);
  auto* const target = static_cast<std::byte*>(y.data);

  const auto row = [&](size_t r) {
    const size_t n = r / out_height, p = r % out_height;
    const std::byte* from = source + (n * height + p * stride) * width * pixel;
    std::byte* to = target + r * out_width * wide;
    std::memset(to, 0, out_width * wide);
    for (size_t q = 0; q < out_width; ++q)
      std::memcpy(to + q * wide + front, from + q * stride * pixel, pixel);
  };
  parallel_for(ctx, static_cast<size_t>(y.shape[0] * out_height), 16,
               [&](size_t begin, size_t end) {
                 for (size_t r = begin; r < end; ++r) row(r);
               });
}

void backward_cpu(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx) {
  const int64_t height = dx.shape[1], out_height = dy.shape[1];
  const size_t element = size_of(dx.dtype);
  const size_t pixel = static_cast<size_t>(dx.shape[3]) * element;
  const size_t wide = static_cast<size_t>(dy.shape[3]) * element;
  const size_t front = static_cast<size_t>((dy.shape[3] - dx.shape[3]) / 2) * element;
  const auto width = static_cast<size_t>(dx.shape[2]);
  const auto out_width = static_cast<size_t>(dy.shape[2]);
  const auto* const source = static_cast<const std::byte*>(dy.data);
  auto* const target = static_cast<std::byte*>(dx.data);

  const auto row = [&](size_t r) {
    const size_t n = r / height, h = r % height;
    std::byte* to = target + r * width * pixel;
    std::memset(to, 0, width * pixel);
    if (h % stride != 0) return;
    const std::byte* from = source + (n * out_height + h / stride) * out_width * wide + front;
    for (size_t q = 0; q < out_width; ++q)
      std::memcpy(to + q * stride * pixel, from + q * wide, pixel);
  };
  parallel_for(ctx, static_cast<size_t>(dx.shape[0] * height), 16, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) row(r);
  });
}

const bool subsample_pad_registered =
    subsample_pad_forward_dispatch.add(Device::cpu, forward_cpu) &&
    subsample_pad_backward_dispatch.add(Device::cpu, backward_cpu);

}  // namespace
}  // namespace tw::ops
