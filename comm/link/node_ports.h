// NodePorts: the two ports of a node, in memory shared by its ranks (threads or processes).
#pragma once

#include "comm/communicator.h"

namespace tw {

class NodePorts {
 public:
  enum Direction { out, in };

  /// Ranks [first, last) share the ports of this node. Collective over these ranks. The memory is
  /// anonymous and is freed with the last rank, even after a crash. UserError when the ranks run on
  /// different machines.
  NodePorts(Context& ctx, Communicator& comm, int first, int last);
  ~NodePorts();
  NodePorts(const NodePorts&) = delete;
  NodePorts& operator=(const NodePorts&) = delete;

  /// Port::book for the shared port of this direction.
  double book(Direction direction, double ready, double seconds);

 private:
  struct Shared;
  Shared* shared_ = nullptr;
};

}  // namespace tw
