#include <array>

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

/// Arguments of one launch that converts up to kMaxConverts vectors to one type. Each block
/// converts kBlockElements elements of one vector.
constexpr uint32_t kMaxConverts = 128, kBlockElements = 4096;
template <class To>
struct ConvertBatch {
  uint32_t count = 0;
  std::array<uint32_t, kMaxConverts + 1> first_block{};
  std::array<const float*, kMaxConverts> from{};
  std::array<To*, kMaxConverts> to{};
  std::array<uint32_t, kMaxConverts> n{};
};

template <class To>
__global__ void __launch_bounds__(cuda::kThreads) convert_batch_kernel(ConvertBatch<To> batch) {
  uint32_t vector = 0;
  while (vector + 1 < batch.count && batch.first_block[vector + 1] <= blockIdx.x) ++vector;
  const uint32_t begin = (blockIdx.x - batch.first_block[vector]) * kBlockElements;
  const uint32_t end = min(batch.n[vector], begin + kBlockElements);
  for (uint32_t i = begin + threadIdx.x; i < end; i += cuda::kThreads)
    batch.to[vector][i] = static_cast<To>(batch.from[vector][i]);
}

template <class To>
void run_batch(const Context& ctx, ConvertBatch<To>& batch) {
  if (batch.count == 0) return;
  cuda::launch(ctx, "convert", convert_batch_kernel<To>, batch.first_block[batch.count],
               cuda::kThreads, batch);
  batch.count = 0;
}

/// Runs the held conversions that write To.
template <class To>
void run_held(const Context& ctx, const std::vector<HeldConvert>& held) {
  ConvertBatch<To> batch;
  for (const HeldConvert& each : held) {
    if (each.type != DTypeOf<To>::value) continue;
    const uint32_t i = batch.count++;
    batch.from[i] = each.from;
    batch.to[i] = static_cast<To*>(each.to);
    batch.n[i] = static_cast<uint32_t>(each.n);
    batch.first_block[i + 1] =
        batch.first_block[i] +
        static_cast<uint32_t>((each.n + kBlockElements - 1) / kBlockElements);
    if (batch.count == kMaxConverts) run_batch(ctx, batch);
  }
  run_batch(ctx, batch);
}

void hold_converts_cuda(Context& ctx) {
  auto& handles = ctx.handles<CudaHandles>();
  handles.holds_converts = true;
  handles.held_converts.clear();  // those of a pass that failed
}

void run_converts_cuda(Context& ctx) {
  auto& handles = ctx.handles<CudaHandles>();
  handles.holds_converts = false;
  run_held<float>(ctx, handles.held_converts);
  run_held<bf16>(ctx, handles.held_converts);
  handles.held_converts.clear();
}

void convert_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  auto& handles = ctx.handles<CudaHandles>();
  const int64_t n = x.numel();
  if (handles.holds_converts && x.dtype == DType::f32 && n < UINT32_MAX) {
    if (n > 0)
      handles.held_converts.push_back({static_cast<const float*>(x.data), y.data, n, y.dtype});
  } else if (x.dtype == y.dtype) {  // no rounding: a copy keeps every bit
    cuda::expect(
        cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, handles.stream()),
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
    add_dispatch.add(Device::cuda, add_cuda) && convert_dispatch.add(Device::cuda, convert_cuda) &&
    hold_converts_dispatch.add(Device::cuda, hold_converts_cuda) &&
    run_converts_dispatch.add(Device::cuda, run_converts_cuda);

}  // namespace
}  // namespace tw::ops
