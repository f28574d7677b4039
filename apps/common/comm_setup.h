// CommOptions, the communication options, and CommSetup, the communicator built from them.
#pragma once

#include <memory>
#include <string>

#include "apps/common/options.h"
#include "comm/link/link.h"

namespace tw {

struct CommOptions {
  std::string transport =
      "auto";                  ///< auto: MPI under mpirun, else threads; nccl: NCCL between GPUs
  std::string link;            ///< RATE,LATENCY of emulated links between nodes; empty: none
  int64_t ranks_per_node = 1;  ///< ranks that share an emulated link
  double comm_timeout = 60;    ///< seconds a rank waits for another; 0: no limit

  /// Declares an option for each member. The table also declares the settings of
  /// default_settings().
  void add_to(OptionTable& table, const std::string& group);
};

/// UserError when this build or machine lacks the transport, or the transport does not support
/// `device` (auto, cpu or cuda).
void check_transport(const CommOptions& options, const std::string& device);

/// The communicator of a run: NCCL and emulated links are wrapped around the one given.
class CommSetup {
 public:
  /// Collective. Sets the timeout of `comm`, which must outlive this. UserError on a malformed
  /// link.
  CommSetup(Communicator& comm, const CommOptions& options, LinkTime time = LinkTime::real);

  Communicator& comm() { return link_ ? *link_ : inner(); }
  /// One line for the user about the transport, the same on all ranks; empty for none.
  const std::string& notice() const { return notice_; }
  /// The emulated links; null when there are none.
  LinkCommunicator* link() { return link_.get(); }

 private:
  Communicator& inner() { return nccl_ ? *nccl_ : plain_; }

  Communicator& plain_;
  std::string notice_;
  std::unique_ptr<Communicator> nccl_;  // null: plain_ is used
  std::unique_ptr<LinkCommunicator> link_;
};

}  // namespace tw
