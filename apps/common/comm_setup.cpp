#include "apps/common/comm_setup.h"

#include "comm/transports.h"
#include "sparsify/exchange.h"

namespace tw {

void CommOptions::add_to(OptionTable& t) {
  t.add(
      "transport", transport,
      "auto: MPI under mpirun, else threads; nccl: the same, with data between GPUs sent by NCCL");
  t.add("link", link,
        "emulate links of RATE,LATENCY between nodes, e.g. 1Gbit,0.4ms, or those of a file.json");
  t.add("ranks-per-node", ranks_per_node,
        std::string("ranks that share a node and its link; also the default of ") + kNodeSetting,
        {.least = 1, .most = 4096, .default_of = kNodeSetting, .given = &ranks_given});
  t.add("comm-timeout", comm_timeout,
        "seconds that a rank waits for another before the run ends; 0: no limit");
}

Topology read_link(const std::string& link, bool given, int64_t& ranks_per_node,
                   Settings& settings) {
  Topology topology = parse_link(link, static_cast<int>(ranks_per_node));
  if (topology.ranks_per_node == ranks_per_node) return topology;
  check(!given && ranks_per_node == 1, "[link] ranks-per-node is {}, but {} has {} ranks a node",
        ranks_per_node, link, topology.ranks_per_node);
  ranks_per_node = topology.ranks_per_node;
  settings.set_default(kNodeSetting, std::to_string(ranks_per_node));
  return topology;
}

bool CommOptions::has_slow_ranks() const {
  return !link.empty() && parse_link(link, static_cast<int>(ranks_per_node)).has_slow_ranks();
}

void check_transport(const CommOptions& options, std::optional<Device> device) {
  if (options.transport != TransportChoice::nccl) return;
  const std::string lacking = what_nccl_lacks();
  check(lacking.empty(), "[options] transport is nccl, but {}; --transport auto needs no NCCL",
        lacking);
  check(device != Device::cpu, "[options] transport is nccl, which needs GPUs, but device is cpu");
}

CommSetup::CommSetup(Communicator& comm, const CommOptions& options, LinkTime time) : plain_(comm) {
  comm.set_timeout(options.comm_timeout);
  if (options.transport != TransportChoice::nccl && options.link.empty()) return;
  Context ctx;
  if (options.transport == TransportChoice::nccl)
    nccl_ = make_nccl_communicator(ctx, comm, notice_);
  if (options.link.empty()) return;
  link_ = std::make_unique<LinkCommunicator>(
      ctx, inner(), parse_link(options.link, static_cast<int>(options.ranks_per_node)), time);
}

}  // namespace tw
