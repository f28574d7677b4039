// Graph: a sequence of ops recorded once and then queued with one launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/core/context.h"

namespace tw {

class Graph {
 public:
  virtual ~Graph() = default;
  /// Records what `body` queues on ctx's device, without computing it. The body may neither
  /// allocate nor wait, and what it calls was called before: libraries load their kernels then.
  static std::unique_ptr<Graph> record(Context& ctx, const std::function<void()>& body);

  /// Queues all of it.
  void launch() {
    ++launches_;
    queue();
  }
  /// Calls of launch() so far.
  uint64_t launches() const { return launches_; }
  /// Kernels and copies of one launch.
  virtual size_t size() const = 0;

 protected:
  virtual void queue() = 0;

 private:
  uint64_t launches_ = 0;
};

using GraphFactory = std::unique_ptr<Graph>(Context&, const std::function<void()>&);
extern DispatchTable<GraphFactory> graph_dispatch;

}  // namespace tw
