// SideStream: a second stream of a rank, for work that runs beside later work of its first stream.
// Included by .cu files and files in cuda/ only.
#pragma once

#include "engine/cuda/cuda_event.h"

namespace tw {

class SideStream {
 public:
  /// Beside `first`, which must outlive this object.
  explicit SideStream(cudaStream_t first);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  /// cuDNN's handle on this stream.
  cudnnContext* cudnn() const { return cudnn_; }

  /// Later work of this stream waits for the work that the first stream has so far.
  void fork();
  /// Later work of the first stream waits for the work of this stream since fork(), if any.
  void join();

 private:
  cudaStream_t first_, stream_ = nullptr;
  cudnnContext* cudnn_ = nullptr;
  CudaEvent forked_, joined_;
  bool open_ = false;
};

}  // namespace tw
