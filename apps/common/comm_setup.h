// CommOptions, the communication options, and CommSetup, the communicator built from them.
#pragma once

#include <memory>
#include <string>

#include "apps/common/options.h"
#include "comm/link/link.h"
#include "engine/core/dtype.h"

namespace tw {

enum class TransportChoice { automatic, nccl };
constexpr auto words(TransportChoice) { return std::array{"auto", "nccl"}; }

/// As parse_link, and takes the ranks of a node from a topology's file, for kNodeSetting, too,
/// unless that was set. UserError if `ranks_per_node` is another number, unless it is 1 and was not
/// given.
Topology read_link(const std::string& link, bool given, int64_t& ranks_per_node,
                   Settings& settings);

struct CommOptions {
  /// Without a choice, MPI under mpirun, else threads; nccl: NCCL between GPUs.
  TransportChoice transport = TransportChoice::automatic;
  std::string link;            ///< of emulated links between nodes, see parse_link; empty: none
  int64_t ranks_per_node = 1;  ///< ranks that share an emulated link
  bool ranks_given = false;    ///< whether a flag has set that
  double comm_timeout = 60;    ///< seconds a rank waits for another; 0: no limit

  /// Declares an option for each member. The table also declares the settings of
  /// default_settings().
  void add_to(OptionTable& table);
  /// As the function read_link, if there is a link.
  void read_link(Settings& settings) {
    if (!link.empty()) tw::read_link(link, ranks_given, ranks_per_node, settings);
  }
  /// Whether some ranks of the link compute longer than usual.
  bool has_slow_ranks() const;
};

/// UserError when this build or machine lacks the transport, or the transport does not support
/// `device` (without a choice: any).
void check_transport(const CommOptions& options, std::optional<Device> device);

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
