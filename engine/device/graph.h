// Graph: a sequence of ops recorded once and then queued with one launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/core/context.h"
#include "engine/core/error.h"

namespace tw {

/// The device cannot record the work, or make a graph of it.
class CaptureError : public Fault {
 public:
  using Fault::Fault;
};

class Graph {
 public:
  virtual ~Graph() = default;
  /// Records the work that `body` queues on ctx's device, without running it. The body may neither
  /// allocate nor wait. Run it once before, because libraries load kernels at their first call.
  /// Throws UserError on the CPU, CaptureError when the device refuses the work.
  static std::unique_ptr<Graph> record(Context& ctx, const std::function<void()>& body);

  /// Queues the recorded work.
  void launch() {
    ++launches_;
    queue();
  }
  /// Number of launches so far.
  uint64_t launches() const { return launches_; }
  /// Number of kernels and copies in one launch.
  virtual size_t size() const = 0;

 protected:
  virtual void queue() = 0;

 private:
  uint64_t launches_ = 0;
};

using GraphFactory = std::unique_ptr<Graph>(Context&, const std::function<void()>&);
inline constinit DispatchTable<GraphFactory> graph_dispatch{"graph"};

inline std::unique_ptr<Graph> Graph::record(Context& ctx, const std::function<void()>& body) {
  return graph_dispatch(ctx.device(), ctx, body);
}

}  // namespace tw
