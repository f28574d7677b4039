#include "engine/core/buffer.h"

#include <cstring>

#include "engine/cuda/cuda.h"

namespace tw {
namespace {

void* allocate_cuda(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which is reported below
    size_t free = 0, total = 0;
    cuda::expect(cudaMemGetInfo(&free, &total), "memory");
    fail<OutOfMemory>("[buffer] out of GPU memory: {} bytes requested, {} of {} free", bytes, free,
                      total);
  }
  cuda::expect(status, "memory");
  cuda::expect(cudaMemset(memory, 0, bytes), "memory");
  // the streams of ranks do not wait for the default stream
  cuda::expect(cudaStreamSynchronize(cudaStreamLegacy), "memory");
  return memory;
}

// cudaFree waits for kernels that use the memory; their errors are reported elsewhere
void release_cuda(void* memory) { cudaFree(memory); }

size_t free_cuda() {
  size_t free = 0, total = 0;
  cuda::expect(cudaMemGetInfo(&free, &total), "memory");
  return free;
}

void* pin_cuda(size_t bytes) {
  void* memory = nullptr;
  // portable: pinned for every GPU of the process
  const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which is reported below
    fail<OutOfMemory>("[buffer] cannot pin {} bytes of host memory", bytes);
  }
  cuda::expect(status, "pinned memory");
  std::memset(memory, 0, bytes);
  return memory;
}

void unpin_cuda(void* memory) { cudaFreeHost(memory); }

const bool buffer_registered = allocate_dispatch.add(Device::cuda, allocate_cuda) &&
                               free_memory_dispatch.add(Device::cuda, free_cuda) &&
                               release_dispatch.add(Device::cuda, release_cuda) &&
                               pin_dispatch.add(Device::cuda, pin_cuda) &&
                               unpin_dispatch.add(Device::cuda, unpin_cuda);

}  // namespace
}  // namespace tw
