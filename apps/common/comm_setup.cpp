#include "apps/common/comm_setup.h"

#include "comm/transports.h"
#include "sparsify/exchange.h"

namespace tw {

void CommOptions::add_to(OptionTable& table, const std::string& group) {
  OptionTable& t = table;
  t.add(
      group, "transport", transport,
      "auto: MPI under mpirun, else threads; nccl: the same, with data between GPUs sent by NCCL");
  t.choices({"auto", "nccl"});
  t.effect(Effect::none);
  t.add(group, "link", link, "emulate links of RATE,LATENCY between nodes, e.g. 1Gbit,0.4ms");
  t.effect(Effect::none);
  t.add(group, "ranks-per-node", ranks_per_node,
        "ranks that share a node and its link; also the default of hierarchical.node");
  t.range(1, 4096);
  t.default_of(kNodeSetting);
  t.effect(Effect::none);
  t.add(group, "comm-timeout", comm_timeout,
        "seconds that a rank waits for another before the run ends; 0: no limit");
  t.effect(Effect::none);
}

void check_transport(const CommOptions& options, const std::string& device) {
  if (options.transport != "nccl") return;
  const std::string lacking = what_nccl_lacks();
  check(lacking.empty(), "[options] transport is nccl, but {}; --transport auto needs no NCCL",
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
