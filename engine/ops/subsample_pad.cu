#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/subsample_pad.h"

namespace tw::ops {
namespace {

/// `x` is the tensor with more pixels and fewer channels, `y` the other. y has `front` channels of
/// zeros before those of x.
struct PadGeometry {
  int64_t height, width, channels, out_height, out_width, out_channels, stride, front;

  PadGeometry(int64_t s, const Tensor& x, const Tensor& y)
      : height(x.shape[1]),
        width(x.shape[2]),
        channels(x.shape[3]),
        out_height(y.shape[1]),
        out_width(y.shape[2]),
        out_channels(y.shape[3]),
        stride(s),
        front((out_channels - channels) / 2) {}
};

template <class T>
struct PadForward {
  PadGeometry g;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const int64_t pixel = cuda::divide(i, g.out_channels), row = cuda::divide(pixel, g.out_width);
    const int64_t c = i - pixel * g.out_channels - g.front, q = pixel - row * g.out_width;
    const int64_t n = cuda::divide(row, g.out_height), p = row - n * g.out_height;
    const int64_t from = (n * g.height + p * g.stride) * g.width + q * g.stride;
    y[i] = c >= 0 && c < g.channels ? x[from * g.channels + c] : T{};
  }
};

template <class T>
struct PadBackward {
  PadGeometry g;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const int64_t pixel = cuda::divide(i, g.channels), row = cuda::divide(pixel, g.width);
    const int64_t c = i - pixel * g.channels, w = pixel - row * g.width;
    const int64_t n = cuda::divide(row, g.height), h = row - n * g.height;
    const int64_t p = cuda::divide(h, g.stride), q = cuda::divide(w, g.stride);
    const int64_t from = (n * g.out_height + p) * g.out_width + q;
    const bool kept = p * g.stride == h && q * g.stride == w;
    dx[i] = kept ? dy[from * g.out_channels + g.front + c] : T{};
  }
};

// elements are copied, so only their size matters
template <template <class> class Body>
void move(Context& ctx, const PadGeometry& g, const Tensor& from, const Tensor& to) {
  cuda::expect_32_bits("subsample_pad", to.numel());
  if (from.dtype == DType::bf16)
    cuda::for_each(ctx, "subsample_pad", to.numel(),
                   Body<uint16_t>{g, static_cast<const uint16_t*>(from.data),
                                  static_cast<uint16_t*>(to.data)});
  else
    cuda::for_each(ctx, "subsample_pad", to.numel(),
                   Body<uint32_t>{g, static_cast<const uint32_t*>(from.data),
                                  static_cast<uint32_t*>(to.data)});
}

void forward_cuda(Context& ctx, int64_t stride, const Tensor& x, const Tensor& y) {
  move<PadForward>(ctx, PadGeometry(stride, x, y), x, y);
}

void backward_cuda(Context& ctx, int64_t stride, const Tensor& dy, const Tensor& dx) {
  move<PadBackward>(ctx, PadGeometry(stride, dx, dy), dy, dx);
}

const bool subsample_pad_registered =
    subsample_pad_forward_dispatch.add(Device::cuda, forward_cuda) &&
    subsample_pad_backward_dispatch.add(Device::cuda, backward_cuda);

}  // namespace
}  // namespace tw::ops
