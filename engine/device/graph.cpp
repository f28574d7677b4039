#include "engine/device/graph.h"

namespace tw {

constinit DispatchTable<GraphFactory> graph_dispatch{"graph"};

std::unique_ptr<Graph> Graph::record(Context& ctx, const std::function<void()>& body) {
  return graph_dispatch(ctx.device(), ctx, body);
}

}  // namespace tw
