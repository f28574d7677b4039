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

/// Rows of pixels, in bytes. `large` is the tensor with more pixels and fewer channels, `small` the
/// other, which has `front` bytes of zeros before the channels of `large`.
struct Rows {
  size_t height, width, pixel, out_height, out_width, wide, front;

  Rows(const Tensor& large, const Tensor& small)
      : height(static_cast<size_t>(large.shape[1])),
        width(static_cast<size_t>(large.shape[2])),
        pixel(static_cast<size_t>(large.shape[3]) * size_of(large.dtype)),
        out_height(static_cast<size_t>(small.shape[1])),
        out_width(static_cast<size_t>(small.shape[2])),
        wide(static_cast<size_t>(small.shape[3]) * size_of(large.dtype)),
        front(static_cast<size_t>((small.shape[3] - large.shape[3]) / 2) * size_of(large.dtype)) {}
};

/// Calls row(r, its memory in `to`, filled with zeros) for the rows of `to`, of `bytes`.
template <class Row>
void for_rows_of(Context& ctx, const Tensor& to, size_t bytes, const Row& row) {
  auto* const target = static_cast<std::byte*>(to.data);
  parallel_for(ctx, static_cast<size_t>(to.shape[0] * to.shape[1]), 16,
               [&](size_t begin, size_t end) {
                 for (size_t r = begin; r < end; ++r) {
                   std::memset(target + r * bytes, 0, bytes);
                   row(r, target + r * bytes);
                 }
               });
}

void forward_cpu(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y) {
  const Rows g(x, y);
  const auto* const source = static_cast<const std::byte*>(x.data);
  for_rows_of(ctx, y, g.out_width * g.wide, [&](size_t r, std::byte* to) {
    const size_t n = r / g.out_height, p = r % g.out_height;
    const std::byte* const from = source + (n * g.height + p * stride) * g.width * g.pixel;
    for (size_t q = 0; q < g.out_width; ++q)
      std::memcpy(to + q * g.wide + g.front, from + q * stride * g.pixel, g.pixel);
  });
}

void backward_cpu(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx) {
  const Rows g(dx, dy);
  const auto* const source = static_cast<const std::byte*>(dy.data) + g.front;
  for_rows_of(ctx, dx, g.width * g.pixel, [&](size_t r, std::byte* to) {
    const size_t n = r / g.height, h = r % g.height;
    if (h % stride != 0) return;
    const std::byte* const from = source + (n * g.out_height + h / stride) * g.out_width * g.wide;
    for (size_t q = 0; q < g.out_width; ++q)
      std::memcpy(to + q * stride * g.pixel, from + q * g.wide, g.pixel);
  });
}

const bool subsample_pad_registered =
    subsample_pad_forward_dispatch.add(Device::cpu, forward_cpu) &&
    subsample_pad_backward_dispatch.add(Device::cpu, backward_cpu);

}  // namespace
}  // namespace tw::ops
