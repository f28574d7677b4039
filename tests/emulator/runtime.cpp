// Emulated CUDA runtime: devices and memory.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/emulator/memory.h"
#include "tests/emulator/stream.h"

using namespace tw::emulator;

namespace {

/// Whether `bytes` from `address` are in one allocation, in memory of the expected kind.
bool reaches(const void* address, size_t bytes, bool device, bool any_side) {
  const Location location = locate(address);
  const bool on_device = location.place == Place::device;
  return bytes == 0 || ((any_side || on_device == device) &&
                        (location.place == Place::host || bytes <= location.bytes));
}

std::atomic<unsigned> device_flags = 0;

bool pageable(const void* address) { return locate(address).place == Place::host; }

}  // namespace

extern "C" {

void tw_emulated() {}  // its presence tells tests that they run in the emulator

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return report(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  device_flags = flags;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = device_flags;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int) {
  std::strncpy(id, "0000:00:00.0", static_cast<size_t>(bytes));
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "error of the CUDA emulator";
  }
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  *memory = bytes > 0 ? allocate_device(bytes) : nullptr;
  return report(bytes > 0 && *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  finish_all();
  return report(release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  *memory = allocate_pinned(bytes);
  return report(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = device_bytes_free();
  *total = kDeviceBytes;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  const Place place = locate(address).place;
  attributes->type = place == Place::device   ? cudaMemoryTypeDevice
                     : place == Place::pinned ? cudaMemoryTypeHost
                                              : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool any = kind == cudaMemcpyDefault;
  if (!reaches(to, bytes, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
               any) ||
      !reaches(from, bytes, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
               any))
    return report(cudaErrorInvalidValue);
  if ((pageable(from) || pageable(to)) && refused_in_capture())
    return report(cudaErrorStreamCaptureUnsupported);
  // pageable memory has been read or written when the call returns
  if (pageable(from) && !pageable(to)) {
    const auto* const first = static_cast<const std::byte*>(from);
    auto staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    return queue(stream, [to, staged] { std::memcpy(to, staged->data(), staged->size()); });
  }
  const cudaError_t queued = queue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
  if (pageable(to)) finish(stream);
  return queued;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  const cudaError_t queued = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  finish(nullptr);
  return queued;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (!reaches(memory, bytes, true, false)) return report(cudaErrorInvalidValue);
  return queue(stream, [=] { std::memset(memory, value, bytes); });
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
}
