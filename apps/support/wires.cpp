#include "apps/support/wires.h"

namespace tw {

Wires::Wires(Communicator& comm, const WireOptions& options, LinkTime time) : plain_(comm) {
  comm.set_timeout(options.comm_timeout);
  if (options.link.empty()) return;
  Context ctx;
  const LinkSpec link = parse_link(options.link, static_cast<int>(options.ranks_per_node));
  link_ = std::make_unique<LinkCommunicator>(ctx, comm, link, time);
}

}  // namespace tw
