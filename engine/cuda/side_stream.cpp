#include "engine/cuda/side_stream.h"

#include <cudnn.h>

namespace tw {

SideStream::SideStream(cudaStream_t first) : first_(first) {
  cuda::expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  cuda::expect_cudnn(cudnnCreate(&cudnn_), "start");
  cuda::expect_cudnn(cudnnSetStream(cudnn_, stream_), "stream");
}

// errors of a failed run are ignored: they were reported where they occurred
SideStream::~SideStream() {
  cudaStreamSynchronize(stream_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
  cudaStreamDestroy(stream_);
}

void SideStream::fork() {
  forked_.record(first_);
  forked_.make_wait(stream_);
  open_ = true;
}

void SideStream::join() {
  if (!open_) return;
  joined_.record(stream_);
  joined_.make_wait(first_);
  open_ = false;
}

}  // namespace tw
