// CudaEvent: a point in a stream that other streams and the host can wait for.
// Included by .cu files and files in cuda/ and nccl/ only.
#pragma once

#include "engine/cuda/cuda.h"

namespace tw {

class CudaEvent {
 public:
  enum class Timing { off, on };  ///< off: cheaper to record and to wait for

  /// Creates an event of the current GPU. wait() blocks the host thread without spinning.
  explicit CudaEvent(Timing timing = Timing::off) {
    const unsigned flags = timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming;
    cuda::expect(cudaEventCreateWithFlags(&event_, flags | cudaEventBlockingSync), "event");
  }
  // errors of a failed run are ignored: they were reported where they occurred
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(cudaStream_t stream) { cuda::expect(cudaEventRecord(event_, stream), "event"); }
  /// Later work on `stream` waits for the recorded event; an event never recorded counts as done.
  void make_wait(cudaStream_t stream) {
    cuda::expect(cudaStreamWaitEvent(stream, event_, 0), "event");
  }
  /// Blocks the host until the recorded event is done.
  void wait() { cuda::expect(cudaEventSynchronize(event_), "event"); }
  bool done() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    cuda::expect(status, "event");
    return true;
  }
  /// Device time since `start`; both are recorded with Timing::on and done.
  double seconds_since(const CudaEvent& start) const {
    float milliseconds = 0;
    cuda::expect(cudaEventElapsedTime(&milliseconds, start.event_, event_), "event");
    return double{milliseconds} * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tw
