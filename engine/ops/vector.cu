#include "engine/cuda_kernel.h"
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

/// Bit for bit what the CPU does, NaNs included: other kernels round by the hardware's instruction.
template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  __device__ void operator()(int64_t i) const { y[i] = static_cast<To>(cuda::load(x[i])); }
};

void fill_cuda(Context& ctx, std::span<float> x, float value) {
  cuda::map(ctx, "fill", std::ssize(x), Fill{value}, x.data());
}

void add_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    T* const sum = y.as<T>().data();
    cuda::map(ctx, "add", x.numel(), Sum{}, sum, static_cast<const T*>(x.data),
              static_cast<const T*>(sum));
  });
}

void convert_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  if (x.dtype == y.dtype) {  // no rounding: a copy keeps every bit
    cuda::expect(
        cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, cuda::stream(ctx)),
        "convert");
  } else if (x.dtype == DType::f32) {
    cuda::for_each(ctx, "convert", x.numel(),
                   Convert<float, bf16>{x.as<float>().data(), y.as<bf16>().data()});
  } else {
    cuda::for_each(ctx, "convert", x.numel(),
                   Convert<bf16, float>{x.as<bf16>().data(), y.as<float>().data()});
  }
}

const bool registered = fill_bodies.add(Device::cuda, fill_cuda) &&
                        add_bodies.add(Device::cuda, add_cuda) &&
                        convert_bodies.add(Device::cuda, convert_cuda);

}  // namespace
}  // namespace tw::ops
