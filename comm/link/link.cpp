#include "comm/link/link.h"

#include <algorithm>
#include <span>
#include <string>

#include "comm/host_id.h"
#include "comm/on_device.h"
#include "engine/core/error.h"

namespace tw {
namespace {

/// UserError when ranks run on different machines: they compare times of one real clock.
void check_one_machine(Context& ctx, Communicator& comm) {
  if (comm.size() == 1) return;
  const HostId here = this_host();
  HostId there{};
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  comm.exchange(ctx, (comm.rank() + 1) % comm.size(), std::as_bytes(std::span(here)), left,
                std::as_writable_bytes(std::span(there)));
  check(here == there,
        "[link] ranks {} and {} run on different machines; links are emulated on one", left,
        comm.rank());
}

}  // namespace

LinkCommunicator::LinkCommunicator(Context& ctx, Communicator& inner, const Topology& topology,
                                   LinkTime time)
    : CommunicatorDecorator(inner),
      topology_(topology),
      node_(topology.node_of(inner.rank())),
      own_(topology.ports(node_)),
      rack_(topology_.rack_of(node_)),
      transport_(fmt::format("{} over an emulated link", inner.transport())),
      clock_(make_link_clock(time)),
      received_(static_cast<size_t>(inner.size())) {
  set_timeout(inner.timeout());
  const OperationScope operation(inner, "link");
  if (time == LinkTime::real) check_one_machine(ctx, inner);
  const int last = topology.node_of(inner.size() - 1);
  const auto shared = [&](int first_node, int last_node) {
    return std::make_unique<NodePorts>(
        ctx, inner, first_node * topology.ranks_per_node,
        std::min((std::min(last_node, last) + 1) * topology.ranks_per_node, inner.size()));
  };
  ports_ = shared(node_, node_);
  if (rack_) uplink_ = shared(rack_->first, rack_->last);
  // an outage is as a message that takes so long
  if (inner.rank() % topology.ranks_per_node == 0)
    for (const Topology::Outage& outage : topology.outages)
      for (const auto direction : {NodePorts::out, NodePorts::in})
        if (outage.node == node_)
          ports_->book(direction, clock_->now() + outage.begin, outage.end - outage.begin);
}

LinkCommunicator::~LinkCommunicator() = default;

void LinkCommunicator::pass(NodePorts& ports, NodePorts::Direction direction, const PortSpec& port,
                            size_t bytes, double ready, Flight& flight) {
  const double seconds = port.seconds(bytes);
  flight.start = ports.book(direction, ready, seconds);
  flight.end = std::max(flight.end, flight.start + seconds);
}

size_t LinkCommunicator::do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  inner_.inherit_timeout(*this);
  if (lies_on_device(ctx, out)) ctx.synchronize();  // a message departs when its bytes are computed
  const double now = clock_->now();
  Flight sent{now, now}, incoming{now, now};
  double done = now;
  if (to >= 0 && !inside(to)) {
    pass(*ports_, NodePorts::out, own_.out, out.size(), now, sent);
    done = sent.end;
    if (leaves(rack_, topology_.node_of(to)))
      pass(*uplink_, NodePorts::out, rack_->out, out.size(), sent.start, sent);
  }
  // the times travel in a message of their own, so that long messages are not copied
  inner_.exchange(ctx, to, std::as_bytes(std::span(&sent, 1)), from,
                  std::as_writable_bytes(std::span(&incoming, from >= 0 ? 1 : 0)));
  const size_t received = inner_.exchange(ctx, to, out, from, in);
  if (from >= 0 && !inside(from)) {
    const int sender = topology_.node_of(from);
    if (const auto way = topology_.pairs.find({sender, node_}); way != topology_.pairs.end())
      incoming.end = std::max(incoming.end, incoming.start + way->second.seconds(received));
    if (leaves(rack_, sender))
      pass(*uplink_, NodePorts::in, rack_->in, received, incoming.start, incoming);
    pass(*ports_, NodePorts::in, own_.in, received, incoming.start, incoming);
    incoming.end += topology_.delay(from, rank(), received_[static_cast<size_t>(from)]++);
  }
  clock_->wait_until(std::max(done, incoming.end));
  return received;
}

}  // namespace tw
