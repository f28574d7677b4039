#include "engine/ops/nonfinite.h"
#include "engine/ops/transfer_cuda.h"

namespace tw::ops {
namespace {

size_t first_nonfinite_cuda(Context& ctx, std::span<const float> x) {
  auto& handles = ctx.handles<CudaHandles>();
  unsigned long long* const first = handles.result();
  unsigned long long found = x.size();
  cuda::expect(cudaMemcpyAsync(first, &found, sizeof found, cudaMemcpyDefault, handles.stream()),
               "first_nonfinite");
  transfer_and_check(ctx, {}, x, first);
  cuda::expect(cudaMemcpyAsync(&found, first, sizeof found, cudaMemcpyDefault, handles.stream()),
               "first_nonfinite");
  handles.synchronize();
  return found;
}

const bool nonfinite_registered = first_nonfinite_dispatch.add(Device::cuda, first_nonfinite_cuda);

}  // namespace

}  // namespace tw::ops
