// What a run may be told about its wires, and the communicator that it then uses.
#pragma once

#include <memory>
#include <string>

#include "comm/link.h"

namespace tw {

struct WireOptions {
  std::string link;            ///< RATE,LATENCY of emulated links between nodes; empty: none
  int64_t ranks_per_node = 1;  ///< on emulated links
  double comm_timeout = 60;    ///< seconds a rank waits for another one; 0: for ever
};

class Wires {
 public:
  /// Collective. `comm` as the options want it. UserError on a link that cannot be read.
  Wires(Communicator& comm, const WireOptions& options, LinkTime time = LinkTime::real);

  Communicator& comm() { return link_ ? *link_ : plain_; }
  /// The emulated links; null when there are none.
  LinkCommunicator* link() { return link_.get(); }

 private:
  Communicator& plain_;
  std::unique_ptr<LinkCommunicator> link_;
};

}  // namespace tw
