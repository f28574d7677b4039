// Emulated CUDA graphs and their recording by one or more streams.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tw::emulator {

/// Nodes of a graph. `after`: the nodes that each waits for. `lane`: the stream that recorded it; 0
/// is the stream that began the recording.
struct GraphNode {
  std::function<void()> work;
  std::vector<size_t> after;
  size_t lane;
};
using GraphNodes = std::vector<GraphNode>;

/// What streams record together.
struct Recording {
  GraphNodes nodes;
  size_t lanes = 1;
  bool broken = false;  ///< by another thread

  /// Whether all nodes come before the end of lane 0, whose last nodes are `last`.
  bool joined(const std::vector<size_t>& last) const;
};

/// Runs the nodes in an order that they allow. `late` is asked before each: if it returns true, a
/// node of another lane than 0 runs only when a node of lane 0 needs it, otherwise it comes first.
void run(const GraphNodes& nodes, const std::function<bool()>& late);

/// What tests see and choose while no other thread uses graphs.
struct GraphHooks {
  std::vector<size_t> lanes;  ///< of the nodes of the graph instantiated last
  bool refuses = false;       ///< cudaGraphInstantiate fails
};
GraphHooks& graph_hooks();

}  // namespace tw::emulator
