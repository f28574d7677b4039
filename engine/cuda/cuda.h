// CudaHandles: the stream and library handles of a rank on a GPU; checks of CUDA's error codes.
// Included by .cu files, headers *_cuda.h and files in cuda/ and nccl/ only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/context.h"

struct cublasContext;
struct cudnnContext;

namespace tw {

class SideStream;

class CudaHandles : public DeviceHandles {
 public:
  /// `gpu`: number of the GPU; -1: local rank modulo the number of GPUs.
  explicit CudaHandles(int gpu = -1);
  ~CudaHandles() override;
  void synchronize() override;
  uint64_t synchronizations() const override { return synchronizations_; }
  void bind_thread() override;

  cudaStream_t stream() const { return stream_; }
  /// Library handles on that stream. The first use creates them, so it must not be during a
  /// capture.
  cublasContext* cublas();
  cudnnContext* cudnn();
  /// A second stream. The first use creates it, so it must not be during a capture.
  SideStream& side();
  /// Later work waits for the work on it, if any.
  void join_side();
  /// One number in device memory, for an op that returns it to the host.
  unsigned long long* result() const { return result_; }
  /// kTickets zeros in device memory, for kernels whose last block finishes the work. Each kernel
  /// resets them to zero.
  uint32_t* tickets() const { return tickets_; }
  static constexpr int kTickets = 1024;
  /// Pinned host memory of at least `bytes`, for the arguments or results of one op. Valid until
  /// the next call, which waits for the device unless synchronize() was called in between.
  std::byte* pinned(size_t bytes);

  bool warm = false;  ///< the clock rate has risen under load, so kernels can be timed

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasContext* cublas_ = nullptr;
  cudnnContext* cudnn_ = nullptr;
  std::unique_ptr<SideStream> side_;
  Buffer cublas_workspace_;
  unsigned long long* result_ = nullptr;
  uint32_t* tickets_ = nullptr;
  std::vector<Buffer> pinned_;  // those before the last stay: freeing waits for kernels of all GPUs
  bool pinned_in_use_ = false;
  uint64_t synchronizations_ = 0;
};

namespace cuda {

/// Throw Fault `[cuda] <what>: <the library's text>` unless the status is success. An error of a
/// kernel is returned by a later call.
void expect(cudaError_t status, const char* what);
void expect_cudnn(int status, const char* what);

inline cudaStream_t stream(const Context& ctx) { return ctx.handles<CudaHandles>().stream(); }

}  // namespace cuda
}  // namespace tw
