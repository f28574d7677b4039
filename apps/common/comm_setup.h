// What a run may be told about its wires, and the communicator that it then uses.
#pragma once

#include <memory>
#include <string>

#include "comm/link/link.h"

namespace tw {

struct CommOptions {
  std::string transport = "auto";  ///< auto: mpirun's or the threads'; nccl: between GPUs
  std::string link;                ///< RATE,LATENCY of emulated links between nodes; empty: none
  int64_t ranks_per_node = 1;      ///< on emulated links
  double comm_timeout = 60;        ///< seconds a rank waits for another one; 0: for ever
};

/// UserError unless this build and machine have the transport, for a `device` (auto, cpu or cuda)
/// that it serves.
void check_transport(const CommOptions& options, const std::string& device);

class CommSetup {
 public:
  /// Collective. `comm` as the options want it. UserError on a link that cannot be read.
  CommSetup(Communicator& comm, const CommOptions& options, LinkTime time = LinkTime::real);

  Communicator& comm() { return link_ ? *link_ : inner(); }
  /// What to tell the user about the wires, in a line; the same on all ranks, empty for nothing.
  const std::string& notice() const { return notice_; }
  /// The emulated links; null when there are none.
  LinkCommunicator* link() { return link_.get(); }

 private:
  Communicator& inner() { return nccl_ ? *nccl_ : plain_; }

  Communicator& plain_;
  std::string notice_;
  std::unique_ptr<Communicator> nccl_;  // null: as plain_ is
  std::unique_ptr<LinkCommunicator> link_;
};

}  // namespace tw
