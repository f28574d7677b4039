#include "apps/common/comm_setup.h"

#include "comm/transports.h"

namespace tw {

void check_transport(const CommOptions& options, const std::string& device) {
  if (options.transport != "nccl") return;
  const std::string lacking = what_nccl_lacks();
  check(lacking.empty(), "[options] transport is nccl, but {}; --transport auto works without",
        lacking);
  check(device != "cpu", "[options] transport is nccl, which needs GPUs, but device is cpu");
}

CommSetup::CommSetup(Communicator& comm, const CommOptions& options, LinkTime time) : plain_(comm) {
  comm.set_timeout(options.comm_timeout);
  if (options.transport != "nccl" && options.link.empty()) return;
  Context ctx;
  if (options.transport == "nccl") nccl_ = make_nccl_communicator(ctx, comm, notice_);
  if (options.link.empty()) return;
  const LinkSpec link = parse_link(options.link, static_cast<int>(options.ranks_per_node));
  link_ = std::make_unique<LinkCommunicator>(ctx, inner(), link, time);
}

}  // namespace tw
