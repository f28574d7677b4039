// CudaEvent: a point in a stream that other streams and the host can wait for.
#pragma once

#include "engine/cuda/cuda.h"

namespace tw {

class CudaEvent {
 public:
  /// The host sleeps while it waits.
  CudaEvent() {
    cuda::expect(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
                 "event");
  }
  // nothing is checked: what is left of a failed run is the process's end to clean up
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(cudaStream_t stream) { cuda::expect(cudaEventRecord(event_, stream), "event"); }
  // an event that was never recorded counts as done
  void make_wait(cudaStream_t stream) {
    cuda::expect(cudaStreamWaitEvent(stream, event_, 0), "event");
  }
  void wait() { cuda::expect(cudaEventSynchronize(event_), "event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tw
