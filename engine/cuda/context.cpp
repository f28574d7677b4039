#include <cublas_v2.h>
#include <cudnn.h>

#include <atomic>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/cuda/cuda.h"

namespace tw {

namespace cuda {

void expect(cudaError_t status, const char* what) {
  check<Fault>(status == cudaSuccess, "[cuda] {}: {}", what, cudaGetErrorString(status));
}

void expect_cublas(int status, const char* what) {
  check<Fault>(status == CUBLAS_STATUS_SUCCESS, "[cuda] cuBLAS {}: {}", what,
               cublasGetStatusString(static_cast<cublasStatus_t>(status)));
}

void expect_cudnn(int status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  char details[512] = "";
  cudnnGetLastErrorString(details, sizeof details);
  fail<Fault>("[cuda] cuDNN {}: {} {}", what,
              cudnnGetErrorString(static_cast<cudnnStatus_t>(status)), details);
}

}  // namespace cuda

namespace {

/// What cuBLAS wants for its fastest kernels on Hopper. Its own would not be fit for a graph.
constexpr size_t kCublasWorkspace = size_t{32} << 20;

std::string missing_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();  // the error was told: the next call need not tell it again
  return fmt::format("no GPU is usable: {}",
                     status == cudaSuccess ? "none found" : cudaGetErrorString(status));
}

/// The GPU of this process: ranks on one machine take turns.
int pick_device() {
  int count = 1;
  cuda::expect(cudaGetDeviceCount(&count), "devices");
  for (const char* variable : {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(variable)) return std::atoi(rank) % count;
  return 0;
}

/// Of this process.
std::atomic<int> natives = 0;

/// A lone rank waits for its GPU as fast as can be, which keeps a core busy. Once ranks are
/// threads, they wait asleep: they would take the cores of those that have something to queue.
void wait_asleep() {
  if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess)
    cudaGetLastError();  // old runtimes: not any more
}

template <class T>
T* allocate(int count) {
  T* memory = nullptr;
  cuda::expect(cudaMalloc(reinterpret_cast<void**>(&memory), sizeof(T) * count), "memory");
  cuda::expect(cudaMemset(memory, 0, sizeof(T) * count), "memory");
  return memory;
}

}  // namespace

CudaHandles::CudaHandles(int gpu) : device_(gpu < 0 ? pick_device() : gpu) {
  bind_thread();
  if (++natives > 1) wait_asleep();
  cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  tickets_ = allocate<uint32_t>(kTickets);
  result_ = allocate<unsigned long long>(1);
  step_input_ = allocate<DeviceStepInput>(1);
  constexpr DeviceStepInput outside;
  cuda::expect(cudaMemcpy(step_input_, &outside, sizeof outside, cudaMemcpyHostToDevice), "memory");
  cuda::expect(cudaDeviceSynchronize(), "start");
}

// what is left of a failed run is the process's end to clean up: nothing is checked here
CudaHandles::~CudaHandles() {
  --natives;
  cudaStreamSynchronize(stream_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
  if (cublas_ != nullptr) cublasDestroy(cublas_);
  cudaFree(step_input_);
  cudaFree(result_);
  cudaFree(tickets_);
  cudaStreamDestroy(stream_);
}

void CudaHandles::synchronize() {
  ++synchronizations_;
  cuda::expect(cudaStreamSynchronize(stream_), "step");
  pinned_in_use_ = false;
}

std::byte* CudaHandles::pinned(size_t bytes) {
  if (pinned_in_use_) synchronize();
  if (pinned_.bytes() < bytes)  // counts vary a little from step to step
    pinned_ = Buffer::pinned(Device::cuda, bytes + bytes / 2);
  pinned_in_use_ = true;
  return pinned_.data();
}

void CudaHandles::bind_thread() { cuda::expect(cudaSetDevice(device_), "device"); }

cublasContext* CudaHandles::cublas() {
  if (cublas_ == nullptr) {
    cuda::expect_cublas(cublasCreate(&cublas_), "start");
    cuda::expect_cublas(cublasSetStream(cublas_, stream_), "stream");
    cublas_workspace_ = Buffer(Device::cuda, kCublasWorkspace);
    cuda::expect_cublas(cublasSetWorkspace(cublas_, cublas_workspace_.data(), kCublasWorkspace),
                        "memory");
  }
  return cublas_;
}

cudnnContext* CudaHandles::cudnn() {
  if (cudnn_ == nullptr) {
    cuda::expect_cudnn(cudnnCreate(&cudnn_), "start");
    cuda::expect_cudnn(cudnnSetStream(cudnn_, stream_), "stream");
  }
  return cudnn_;
}

namespace {

/// Before main, and so before CUDA starts and before there are threads. Ranks that are threads have
/// a stream each; with the usual 8 connections to the GPU some would wait for each other.
const bool connected = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

const bool registered =
    missing_dispatch.add(Device::cuda, missing_cuda) &&
    device_handles_dispatch.add(Device::cuda, [](int gpu) -> std::unique_ptr<DeviceHandles> {
      return std::make_unique<CudaHandles>(gpu);
    });

}  // namespace
}  // namespace tw
