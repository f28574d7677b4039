#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/nonfinite.h"
#include "engine/ops/nonfinite_cuda.h"

namespace tw::ops {
namespace {

struct FindNonfinite {
  const float* x;
  unsigned long long* first;
  __device__ void operator()(int64_t i) const {
    if (!isfinite(x[i])) atomicMin(first, static_cast<unsigned long long>(i));
  }
};

size_t first_nonfinite_cuda(Context& ctx, std::span<const float> x) {
  auto& handles = ctx.handles<CudaHandles>();
  unsigned long long* const first = handles.result();
  unsigned long long found = x.size();
  cuda::expect(cudaMemcpyAsync(first, &found, sizeof found, cudaMemcpyDefault, handles.stream()),
               "first_nonfinite");
  cuda::for_each(ctx, "first_nonfinite", std::ssize(x), FindNonfinite{x.data(), first});
  cuda::expect(cudaMemcpyAsync(&found, first, sizeof found, cudaMemcpyDefault, handles.stream()),
               "first_nonfinite");
  handles.synchronize();
  return found;
}

const bool nonfinite_registered = first_nonfinite_dispatch.add(Device::cuda, first_nonfinite_cuda);

}  // namespace

void record_nonfinite(Context& ctx, std::span<const float> x) {
  cuda::for_each(ctx, "record_nonfinite", std::ssize(x),
                 FindNonfinite{x.data(), &ctx.handles<CudaHandles>().step_input()->nonfinite});
}

}  // namespace tw::ops
