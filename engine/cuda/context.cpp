#include <cudnn.h>

#include <atomic>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/cuda/cublas.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/side_stream.h"

namespace tw {

namespace cuda {

void expect(cudaError_t status, const char* what) {
  check<Fault>(status == cudaSuccess, "[cuda] {}: {}", what, cudaGetErrorString(status));
}

void expect_cublas(cublasStatus_t status, const char* what) {
  check<Fault>(status == CUBLAS_STATUS_SUCCESS, "[cuda] cuBLAS {}: {}", what,
               cublas().status_string(status));
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

/// Bytes that cuBLAS's fastest kernels on Hopper use. Its default workspace cannot be captured.
constexpr size_t kCublasWorkspace = size_t{32} << 20;

std::string missing_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();  // clears the error, which is reported below
  return fmt::format("no GPU is usable: {}",
                     status == cudaSuccess ? "none found" : cudaGetErrorString(status));
}

/// The GPU of this process: its local rank modulo the number of GPUs.
int pick_device() {
  int count = 1;
  cuda::expect(cudaGetDeviceCount(&count), "devices");
  for (const char* variable : {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(variable)) return std::atoi(rank) % count;
  return 0;
}

/// Number of CudaHandles in this process.
std::atomic<int> handles_alive = 0;

/// A single rank spins while it waits for its GPU. Ranks that are threads block instead, so they do
/// not starve ranks that still have work to queue.
void use_blocking_waits() {
  if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess)
    cudaGetLastError();  // older runtimes refuse after the first call
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
  if (++handles_alive > 1) use_blocking_waits();
  cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  tickets_ = allocate<uint32_t>(kTickets);
  result_ = allocate<unsigned long long>(1);
  // not the whole device: that would break the capture of another rank
  cuda::expect(cudaStreamSynchronize(cudaStreamLegacy), "start");
}

// errors of a failed run are ignored: they were reported where they occurred
CudaHandles::~CudaHandles() {
  --handles_alive;
  side_.reset();
  cudaStreamSynchronize(stream_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
  if (cublas_ != nullptr) cuda::cublas().destroy(cublas_);
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
  if (pinned_.empty() || pinned_.back().bytes() < bytes)  // counts vary a little from step to step
    pinned_.push_back(Buffer::pinned(Device::cuda, bytes + bytes / 2));
  pinned_in_use_ = true;
  return pinned_.back().data();
}

void CudaHandles::bind_thread() { cuda::expect(cudaSetDevice(device_), "device"); }

cublasContext* CudaHandles::cublas() {
  if (cublas_ == nullptr) {
    const cuda::Cublas& library = cuda::cublas();
    cuda::expect_cublas(library.create(&cublas_), "start");
    cuda::expect_cublas(library.set_stream(cublas_, stream_), "stream");
    cublas_workspace_ = Buffer(Device::cuda, kCublasWorkspace);
    cuda::expect_cublas(library.set_workspace(cublas_, cublas_workspace_.data(), kCublasWorkspace),
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

SideStream& CudaHandles::side() {
  if (side_ == nullptr) side_ = std::make_unique<SideStream>(stream_);
  return *side_;
}

void CudaHandles::join_side() {
  if (side_ != nullptr) side_->join();
}

namespace {

const bool context_registered = missing_dispatch.add(Device::cuda, missing_cuda) &&
                                device_handles_dispatch.add<CudaHandles>(Device::cuda);

}  // namespace
}  // namespace tw
