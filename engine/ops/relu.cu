#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/relu.h"

namespace tw::ops {
namespace {

struct ReluForward {
  // this order keeps a NaN
  __device__ float operator()(int64_t, float x) const { return 0.0f > x ? 0.0f : x; }
};
struct ReluBackward {
  __device__ float operator()(int64_t, float y, float dy) const { return y > 0.0f ? dy : 0.0f; }
};

void relu_forward_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    cuda::map(ctx, "relu", x.numel(), ReluForward{}, y.as<T>().data(),
              static_cast<const T*>(x.data));
  });
}

void relu_backward_cuda(Context& ctx, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  with_activation_type(y.dtype, [&]<class T>() {
    cuda::map(ctx, "relu", y.numel(), ReluBackward{}, dx.as<T>().data(),
              static_cast<const T*>(y.data), static_cast<const T*>(dy.data));
  });
}

const bool relu_registered = relu_forward_dispatch.add(Device::cuda, relu_forward_cuda) &&
                             relu_backward_dispatch.add(Device::cuda, relu_backward_cuda);

}  // namespace
}  // namespace tw::ops
