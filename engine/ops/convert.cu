// Conversions, one by one or, where many short ones come together, in one launch.
#include <array>

#include "engine/core/error.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/vector.h"

namespace tw::ops {
namespace {

/// Bit for bit what the CPU does, NaNs included: other kernels round by the hardware's instruction.
template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  __device__ void operator()(int64_t i) const { y[i] = static_cast<To>(cuda::load(x[i])); }
};

/// Held conversions of one type, as many as travel with a launch. A block takes kEach elements of
/// one of them.
constexpr uint32_t kMost = 128, kEach = 4096;
template <class To>
struct Together {
  uint32_t count = 0;
  std::array<uint32_t, kMost + 1> first_block{};
  std::array<const float*, kMost> from{};
  std::array<To*, kMost> to{};
  std::array<uint32_t, kMost> n{};
};

template <class To>
__global__ void __launch_bounds__(cuda::kThreads) together_kernel(Together<To> all) {
  uint32_t mine = 0;
  while (mine + 1 < all.count && all.first_block[mine + 1] <= blockIdx.x) ++mine;
  const uint32_t begin = (blockIdx.x - all.first_block[mine]) * kEach;
  const uint32_t end = min(all.n[mine], begin + kEach);
  for (uint32_t i = begin + threadIdx.x; i < end; i += cuda::kThreads)
    all.to[mine][i] = static_cast<To>(all.from[mine][i]);
}

template <class To>
void run_together(const Context& ctx, Together<To>& all) {
  if (all.count == 0) return;
  cuda::launch(ctx, "convert", together_kernel<To>, all.first_block[all.count], cuda::kThreads,
               all);
  all.count = 0;
}

/// Runs those of the held conversions that write To.
template <class To>
void run_held(const Context& ctx, const std::vector<HeldConvert>& held) {
  Together<To> all;
  for (const HeldConvert& each : held) {
    if (each.type != DTypeOf<To>::value) continue;
    const uint32_t i = all.count++;
    all.from[i] = each.from;
    all.to[i] = static_cast<To*>(each.to);
    all.n[i] = static_cast<uint32_t>(each.n);
    all.first_block[i + 1] =
        all.first_block[i] + static_cast<uint32_t>((each.n + kEach - 1) / kEach);
    if (all.count == kMost) run_together(ctx, all);
  }
  run_together(ctx, all);
}

void hold_converts_cuda(Context& ctx) { ctx.handles<CudaHandles>().holds_converts = true; }

void run_converts_cuda(Context& ctx) {
  auto& native = ctx.handles<CudaHandles>();
  native.holds_converts = false;
  run_held<float>(ctx, native.held_converts);
  run_held<bf16>(ctx, native.held_converts);
  native.held_converts.clear();
}

void convert_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  auto& native = ctx.handles<CudaHandles>();
  const int64_t n = x.numel();
  if (native.holds_converts && x.dtype == DType::f32 && n < UINT32_MAX) {
    if (n > 0)
      native.held_converts.push_back({static_cast<const float*>(x.data), y.data, n, y.dtype});
  } else if (x.dtype == y.dtype) {  // no rounding: a copy keeps every bit
    cuda::expect(
        cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, native.stream()),
        "convert");
  } else if (x.dtype == DType::f32) {
    cuda::for_each(ctx, "convert", n,
                   Convert<float, bf16>{x.as<float>().data(), y.as<bf16>().data()});
  } else {
    cuda::for_each(ctx, "convert", n,
                   Convert<bf16, float>{x.as<bf16>().data(), y.as<float>().data()});
  }
}

const bool registered = convert_dispatch.add(Device::cuda, convert_cuda) &&
                        hold_converts_dispatch.add(Device::cuda, hold_converts_cuda) &&
                        run_converts_dispatch.add(Device::cuda, run_converts_cuda);

}  // namespace
}  // namespace tw::ops
