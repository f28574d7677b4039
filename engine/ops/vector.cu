#include "engine/core/error.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/vector.h"

namespace tw::ops {
namespace {

struct Fill {
  float value;
  __device__ float operator()(int64_t) const { return value; }
};
struct Sum {
  __device__ float operator()(int64_t, float x, float y) const { return y + x; }
};

struct Scale {
  float factor;
  __device__ float operator()(int64_t, float x) const { return x * factor; }
};
struct Difference {
  __device__ float operator()(int64_t, float x, float y) const { return y - x; }
};

void fill_cuda(Context& ctx, std::span<float> x, float value) {
  cuda::map(ctx, "fill", std::ssize(x), Fill{value}, x.data());
}

void scale_cuda(Context& ctx, std::span<float> x, float factor) {
  cuda::map(ctx, "scale", std::ssize(x), Scale{factor}, x.data(),
            static_cast<const float*>(x.data()));
}

void subtract_cuda(Context& ctx, std::span<const float> x, std::span<float> y) {
  cuda::map(ctx, "subtract", std::ssize(x), Difference{}, y.data(), x.data(),
            static_cast<const float*>(y.data()));
}

void add_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    T* const sum = y.as<T>().data();
    cuda::map(ctx, "add", x.numel(), Sum{}, sum, static_cast<const T*>(x.data),
              static_cast<const T*>(sum));
  });
}

/// Rounds as the CPU does, NaNs included. Other kernels use the hardware's conversion, which makes
/// every NaN the quiet one.
template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  __device__ void operator()(int64_t i) const { y[i] = static_cast<To>(cuda::load(x[i])); }
};

void convert_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  const int64_t n = x.numel();
  if (x.dtype == y.dtype) {  // no rounding: a copy keeps every bit
    cuda::expect(
        cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, cuda::stream(ctx)),
        "convert");
  } else if (x.dtype == DType::f32) {
    cuda::for_each(ctx, "convert", n,
                   Convert<float, bf16>{x.as<float>().data(), y.as<bf16>().data()});
  } else {
    cuda::for_each(ctx, "convert", n,
                   Convert<bf16, float>{x.as<bf16>().data(), y.as<float>().data()});
  }
}

const bool vector_registered =
    fill_dispatch.add(Device::cuda, fill_cuda) && scale_dispatch.add(Device::cuda, scale_cuda) &&
    subtract_dispatch.add(Device::cuda, subtract_cuda) &&
    add_dispatch.add(Device::cuda, add_cuda) && convert_dispatch.add(Device::cuda, convert_cuda);

}  // namespace
}  // namespace tw::ops
