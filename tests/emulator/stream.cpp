#include "tests/emulator/stream.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/emulator/graph.h"
#include "tests/emulator/memory.h"

using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

using tw::emulator::GraphNodes, tw::emulator::Recording;

// types of the handles in the CUDA runtime
struct CUgraph_st {
  std::shared_ptr<const GraphNodes> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const GraphNodes> nodes;
};
struct CUstream_st {
  std::deque<Work> queue;
  std::minstd_rand draw{23};  ///< per stream, so that other ranks have no influence
  std::shared_ptr<Recording> capture;
  size_t lane = 0;           ///< in the capture
  std::vector<size_t> last;  ///< nodes of the capture that the next one waits for
};
struct Record {
  CUstream_st* stream;
  bool done = false;
  Clock::time_point when{};
};
struct CUevent_st {
  std::shared_ptr<Record> last;       ///< null: never recorded
  std::weak_ptr<Recording> captured;  ///< where it was recorded last, if in a capture
  std::vector<size_t> after;          ///< the nodes of the capture before it
};

namespace tw::emulator {

namespace {

struct Device {
  std::recursive_mutex mutex;
  std::set<CUstream_st*> streams{&legacy};
  CUstream_st legacy;
};

Device& device() {
  static Device* const one = new Device;  // never destroyed: statics may hold streams
  return *one;
}
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int captures = 0;
thread_local bool invalidated = false;
thread_local cudaError_t last_error = cudaSuccess;

CUstream_st& named(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy ? device().legacy : *stream;
}

void run_next(CUstream_st& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  work();
}

void run_until(const std::shared_ptr<Record>& record) {
  if (record == nullptr || record->done) return;
  const Access access;
  while (!record->done) run_next(*record->stream);
}

}  // namespace

cudaError_t report(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

bool refused_in_capture() {
  invalidated |= captures > 0;
  return captures > 0;
}

void finish(cudaStream_t stream) {
  const Lock lock(device().mutex);
  if (named(stream).queue.empty()) return;
  const Access access;
  while (!named(stream).queue.empty()) run_next(named(stream));
}

void finish_all() {
  const Lock lock(device().mutex);
  const Access access;
  for (CUstream_st* const stream : device().streams) finish(stream);
}

std::function<void()>& before_queue() {
  static std::function<void()> hook;
  return hook;
}

cudaError_t queue(cudaStream_t handle, Work work) {
  if (before_queue()) before_queue()();
  const Lock lock(device().mutex);
  CUstream_st& stream = named(handle);
  if (stream.capture != nullptr) {
    GraphNodes& nodes = stream.capture->nodes;
    nodes.push_back({std::move(work), std::exchange(stream.last, {nodes.size()}), stream.lane});
    return cudaSuccess;
  }
  stream.queue.push_back(std::move(work));
  if (stream.draw() % 8 == 0) finish(handle);
  return cudaSuccess;
}

namespace {

std::atomic<uint64_t> launched = 0;

}  // namespace

uint64_t launches() { return launched; }

cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, Work kernel) {
  const auto threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > INT32_MAX || grid.y > UINT16_MAX || grid.z > UINT16_MAX)
    return report(cudaErrorInvalidConfiguration);
  ++launched;
  return queue(stream, std::move(kernel));
}

}  // namespace tw::emulator

using namespace tw::emulator;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Lock lock(device().mutex);
  device().streams.insert(*stream = new CUstream_st);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(device().mutex);
  finish(stream);
  device().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  finish(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(device().mutex);
  bool captures_somewhere = false;  // and is broken by this call, as in CUDA
  for (CUstream_st* const stream : device().streams)
    if (stream->capture != nullptr) captures_somewhere = stream->capture->broken = true;
  if (captures_somewhere) return report(cudaErrorStreamCaptureUnsupported);
  finish_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(device().mutex);
  event->captured = named(stream).capture;
  event->after = named(stream).last;
  if (named(stream).capture != nullptr) return cudaSuccess;
  const auto record = std::make_shared<Record>(Record{.stream = &named(stream)});
  event->last = record;
  return queue(stream, [record] {
    record->done = true;
    record->when = Clock::now();
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(device().mutex);
  CUstream_st& waiting = named(stream);
  if (const std::shared_ptr<Recording> capture = event->captured.lock()) {
    if (waiting.capture == nullptr) {  // takes part from now on
      waiting.capture = capture;
      waiting.lane = capture->lanes++;
    }
    if (waiting.capture != capture) return report(cudaErrorStreamCaptureMerge);
    waiting.last.insert(waiting.last.end(), event->after.begin(), event->after.end());
    return cudaSuccess;
  }
  if (waiting.capture != nullptr) {
    refused_in_capture();
    return report(cudaErrorStreamCaptureIsolation);
  }
  return queue(stream, [record = event->last] { run_until(record); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(device().mutex);
  if (refused_in_capture()) return report(cudaErrorStreamCaptureUnsupported);
  run_until(event->last);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(device().mutex);
  const auto record = event->last;
  if (record != nullptr && !record->done) {
    const Access access;
    run_next(*record->stream);
  }
  return record == nullptr || record->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Lock lock(device().mutex);
  const auto time = end->last->when - begin->last->when;
  *milliseconds = std::chrono::duration<float, std::milli>(time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(device().mutex);
  if (stream == nullptr || stream->capture != nullptr) return report(cudaErrorIllegalState);
  stream->capture = std::make_shared<Recording>();
  stream->lane = 0;
  ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(device().mutex);
  const std::shared_ptr<Recording> capture = stream->capture;
  if (capture == nullptr || stream->lane != 0) return report(cudaErrorIllegalState);
  const bool joined = capture->joined(stream->last);
  for (CUstream_st* const each : device().streams)
    if (each->capture == capture) each->capture = nullptr, each->last.clear();
  --captures;
  *graph = nullptr;
  if (std::exchange(invalidated, false) || capture->broken)
    return report(cudaErrorStreamCaptureInvalidated);
  if (!joined) return report(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::make_shared<const GraphNodes>(std::move(capture->nodes))};
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->nodes->size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  const Lock lock(device().mutex);
  GraphHooks& hooks = graph_hooks();
  if (hooks.refuses) return report(cudaErrorNotSupported);
  hooks.lanes.clear();
  for (const GraphNode& node : *graph->nodes) hooks.lanes.push_back(node.lane);
  *ready = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  const Lock lock(device().mutex);
  std::minstd_rand draw(named(stream).draw());
  const auto order = draw() % 3;  // other lanes always late, never, or at random
  return queue(stream, [nodes = ready->nodes, draw, order]() mutable {
    run(*nodes, [&] { return order == 2 ? draw() % 2 == 0 : order == 0; });
  });
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
}
