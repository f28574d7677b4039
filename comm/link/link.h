// LinkCommunicator: emulates a slow network between the nodes, over any transport.
//
// Each node has one full-duplex port, as in comm/cost_model.h: a message of n bytes occupies its
// sender's outgoing and its receiver's incoming port for latency + n / rate. Messages queue at a
// port; the sender continues when its message has left, the receiver when it has arrived. Messages
// between ranks of one node take no time.
//
// With the file of a topology, ports have rates of their own, and a message between racks also
// occupies both uplinks. It enters a port as soon as it begins to leave the one before
// (cut-through), and it has arrived when it has left all of them, no earlier than the way of its
// pair of nodes allows, and late by its delay. In an outage a port of the node is occupied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator_decorator.h"
#include "comm/link/link_clock.h"
#include "comm/link/node_ports.h"
#include "comm/link/topology.h"

namespace tw {

/// A communicator with emulated links between its nodes. bytes_sent() counts the payload only.
///
/// Times on the simulated clock are exact and repeatable, except that the order in which ranks of
/// one node book its port, or those of a rack its uplink, depends on thread scheduling.
class LinkCommunicator : public CommunicatorDecorator {
 public:
  /// Collective. `inner` outlives this; other users of it may not run at the same time. UserError
  /// when ranks of one node, or with the real clock any ranks, run on different machines.
  LinkCommunicator(Context& ctx, Communicator& inner, const Topology& topology,
                   LinkTime time = LinkTime::real);
  ~LinkCommunicator() override;

  const char* transport() const override { return transport_.c_str(); }
  double now() const override { return clock_->now(); }
  std::shared_ptr<void> share(const std::function<std::shared_ptr<void>()>& make) override {
    return inner_.share(make);
  }
  int sharing_ranks() const override { return inner_.sharing_ranks(); }
  const Topology& topology() const { return topology_; }

  /// Emulates a computation of `seconds`: sleeps, or advances the simulated clock.
  void advance(double seconds) { clock_->wait_until(clock_->now() + seconds); }
  void computed(double seconds, uint64_t step) override {
    if (topology_.has_slow_ranks()) advance(seconds * (topology_.slowness(rank(), step) - 1));
  }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  /// When a message begins to leave the last port so far, and when it has left all of them.
  struct Flight {
    double start, end;
  };
  /// Books a port for the message; `ready`: no earlier.
  static void pass(NodePorts& ports, NodePorts::Direction direction, const PortSpec& port,
                   size_t bytes, double ready, Flight& flight);
  bool inside(int peer) const { return topology_.node_of(peer) == node_; }
  /// Whether a message between a node of the rack and node `other` passes the uplink.
  static bool leaves(const Topology::Ports* rack, int other) {
    return rack && (other < rack->first || other > rack->last);
  }

  Topology topology_;
  int node_;
  Topology::Ports own_;
  const Topology::Ports* rack_;
  std::string transport_;
  std::unique_ptr<LinkClock> clock_;
  std::unique_ptr<NodePorts> ports_, uplink_;
  std::vector<uint64_t> received_;  // messages, by sender
};

}  // namespace tw
