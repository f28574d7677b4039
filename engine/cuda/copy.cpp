#include "engine/core/copy.h"

#include "engine/cuda/cuda.h"

namespace tw {
namespace {

void copy_cuda(Context& ctx, const Tensor& x, const Tensor& y) {
  cuda::expect(cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDefault, cuda::stream(ctx)),
               "copy");
  if (x.device == Device::cpu || y.device == Device::cpu) ctx.synchronize();
}

Device locate_cuda(const void* data) {
  cudaPointerAttributes attributes{};
  cuda::expect(cudaPointerGetAttributes(&attributes, data), "pointer attributes");
  const bool on_device =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  return on_device ? Device::cuda : Device::cpu;
}

const bool copy_registered =
    copy_dispatch.add(Device::cuda, copy_cuda) && locate_dispatch.add(Device::cuda, locate_cuda);

}  // namespace
}  // namespace tw
