#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/global_average.h"

namespace tw::ops {
namespace {

constexpr int kAcross = 32, kDown = 8;  // channels and pixel groups of a block

/// A block takes one image and kAcross channels. The order of the additions is fixed.
template <class T>
__global__ void __launch_bounds__(kAcross* kDown)
    mean_kernel(const T* x, int64_t pixels, int64_t channels, T* y) {
  __shared__ float sums[kDown][kAcross];
  const int64_t c = blockIdx.y * int64_t{kAcross} + threadIdx.x, n = blockIdx.x;
  float sum = 0;
  if (c < channels)
    for (int64_t p = threadIdx.y; p < pixels; p += kDown)
      sum += cuda::load(x[(n * pixels + p) * channels + c]);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= channels) return;
  for (int group = 1; group < kDown; ++group) sum += sums[group][threadIdx.x];
  cuda::store(y[n * channels + c], sum / static_cast<float>(pixels));
}

template <class T>
struct Spread {
  int64_t pixels, channels;
  float scale;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const int64_t c = i % channels, n = i / channels / pixels;
    cuda::store(dx[i], scale * cuda::load(dy[n * channels + c]));
  }
};

void global_average_forward_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  const int64_t channels = x.shape[3];
  const dim3 grid(static_cast<unsigned>(x.shape[0]),
                  static_cast<unsigned>((channels + kAcross - 1) / kAcross));
  with_activation_type(x.dtype, [&]<class T>() {
    cuda::launch(ctx, "global_average", mean_kernel<T>, grid, dim3(kAcross, kDown),
                 static_cast<const T*>(x.data), x.shape[1] * x.shape[2], channels,
                 y.as<T>().data());
  });
}

void global_average_backward_cuda(Context& ctx, const Tensor& dy, const Tensor& dx) {
  const int64_t pixels = dx.shape[1] * dx.shape[2];
  with_activation_type(dx.dtype, [&]<class T>() {
    cuda::for_each(ctx, "global_average", dx.numel(),
                   Spread<T>{pixels, dx.shape[3], 1.0f / static_cast<float>(pixels),
                             dy.as<T>().data(), dx.as<T>().data()});
  });
}

const bool global_average_registered =
    global_average_forward_dispatch.add(Device::cuda, global_average_forward_cuda) &&
    global_average_backward_dispatch.add(Device::cuda, global_average_backward_cuda);

}  // namespace
}  // namespace tw::ops
