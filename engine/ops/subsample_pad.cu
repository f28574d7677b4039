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
    const int64_t c = i % g.out_channels - g.front, pixel = i / g.out_channels;
    const int64_t q = pixel % g.out_width, p = pixel / g.out_width % g.out_height;
    const int64_t n = pixel / g.out_width / g.out_height;
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
    const int64_t c = i % g.channels, pixel = i / g.channels;
    const int64_t w = pixel % g.width, h = pixel / g.width % g.height;
    const int64_t n = pixel / g.width / g.height;
    const int64_t from = (n * g.out_height + h / g.stride) * g.out_width + w / g.stride;
    const bool kept = h % g.stride == 0 && w % g.stride == 0;
    dx[i] = kept ? dy[from * g.out_channels + g.front + c] : T{};
  }
};

// elements are copied, so only their size matters
template <template <class> class Body>
void move(Context& ctx, const PadGeometry& g, const Tensor& from, const Tensor& to) {
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
