#include "engine/device/graph.h"

namespace tw {

constinit Bodies<GraphFactory> graph_bodies{"graph"};

std::unique_ptr<Graph> Graph::record(Context& ctx, const std::function<void()>& body) {
  return graph_bodies(ctx.device(), ctx, body);
}

}  // namespace tw
