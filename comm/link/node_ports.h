// NodePorts: the two ports of a node, in memory that all its ranks share, threads or processes.
#pragma once

#include "comm/communicator.h"

namespace tw {

class NodePorts {
 public:
  enum Direction { out, in };

  /// Ranks [first, last) share the ports of this node. Collective over them. The memory has no name
  /// and no file: nothing of it can outlive the ranks, however they end. UserError when the ranks
  /// do not run on one machine.
  NodePorts(Context& ctx, Communicator& comm, int first, int last);
  ~NodePorts();
  NodePorts(const NodePorts&) = delete;
  NodePorts& operator=(const NodePorts&) = delete;

  /// Port::book for the ranks' common port.
  double book(Direction direction, double ready, double seconds);

 private:
  struct Shared;
  Shared* shared_ = nullptr;
};

}  // namespace tw
