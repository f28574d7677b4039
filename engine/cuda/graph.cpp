#include "engine/device/graph.h"

#include "engine/cuda/cuda.h"

namespace tw {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(Context& ctx, const std::function<void()>& body) : stream_(cuda::stream(ctx)) {
    cudaGraph_t graph = capture(body);
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &size_);
    const cudaError_t made = cudaGraphInstantiate(&ready_, graph, 0);
    cudaGraphDestroy(graph);
    cuda::expect(counted, "graph");
    if (made != cudaSuccess) refused(made);
  }
  ~CudaGraph() override { cudaGraphExecDestroy(ready_); }

  size_t size() const override { return size_; }

 private:
  void queue() override { cuda::expect(cudaGraphLaunch(ready_, stream_), "graph"); }
  cudaGraph_t capture(const std::function<void()>& body) const {
    // other threads of this process may allocate meanwhile
    cuda::expect(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    cudaGraph_t graph = nullptr;
    try {
      body();
    } catch (...) {
      const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();  // clears the error of the call that failed, which is reported
      if (status == cudaErrorStreamCaptureInvalidated) refused(status);
      throw;
    }
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    if (status != cudaSuccess) refused(status);
    return graph;
  }
  [[noreturn]] static void refused(cudaError_t status) {
    cudaGetLastError();  // clears the error, which is reported here
    fail<CaptureError>("[cuda] graph: {}", cudaGetErrorString(status));
  }

  cudaStream_t stream_;
  cudaGraphExec_t ready_ = nullptr;
  size_t size_ = 0;
};

std::unique_ptr<Graph> record_cuda(Context& ctx, const std::function<void()>& body) {
  return std::make_unique<CudaGraph>(ctx, body);
}

const bool graph_registered = graph_dispatch.add(Device::cuda, record_cuda);

}  // namespace
}  // namespace tw
