// LinkCommunicator: emulates a slow network between the nodes, over any transport.
//
// Each node has one full-duplex port, as in comm/cost_model.h: a message of n bytes occupies its
// sender's outgoing and its receiver's incoming port for latency + n / rate. Messages queue at a
// port; the sender continues when its message has left, the receiver when it has arrived. Messages
// between ranks of one node take no time.
#pragma once

#include <memory>
#include <string_view>

#include "comm/communicator_decorator.h"
#include "comm/cost_model.h"
#include "comm/link/link_clock.h"

namespace tw {

struct LinkSpec {
  double latency = 0;          ///< seconds per message
  double bits_per_second = 0;  ///< above 0
  int ranks_per_node = 1;      ///< ranks 0 .. n-1 share the first node's ports, and so on

  double seconds(size_t bytes) const {
    return latency + 8 * static_cast<double>(bytes) / bits_per_second;
  }
  /// Between nodes.
  LinkCost cost() const { return {.alpha = latency, .beta = seconds(sizeof(float)) - latency}; }
};

/// Parses RATE,LATENCY as in `1Gbit,0.4ms`. Rates are in bit, kbit, Mbit or Gbit per second,
/// latencies in us, ms or s. UserError on anything else.
LinkSpec parse_link(std::string_view text, int ranks_per_node = 1);

/// A communicator with emulated links between its nodes. bytes_sent() counts the payload only.
///
/// Times on the simulated clock are exact and repeatable, except that the order in which ranks of
/// one node book its port depends on thread scheduling.
class LinkCommunicator : public CommunicatorDecorator {
 public:
  /// Collective. `inner` outlives this; other users of it may not run at the same time. UserError
  /// when ranks of one node, or with the real clock any ranks, run on different machines.
  LinkCommunicator(Context& ctx, Communicator& inner, const LinkSpec& link,
                   LinkTime time = LinkTime::real);
  ~LinkCommunicator() override;

  const char* transport() const override { return transport_.c_str(); }
  double now() const override { return clock_->now(); }
  std::shared_ptr<void> share(const std::function<std::shared_ptr<void>()>& make) override {
    return inner_.share(make);
  }
  int sharing_ranks() const override { return inner_.sharing_ranks(); }
  const LinkSpec& spec() const { return link_; }

  /// Emulates a computation of `seconds`: sleeps, or advances the simulated clock.
  void advance(double seconds) { clock_->wait_until(clock_->now() + seconds); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  int node(int rank) const { return rank / link_.ranks_per_node; }
  bool inside(int peer) const { return node(peer) == node(rank()); }

  LinkSpec link_;
  std::string transport_;
  std::unique_ptr<LinkClock> clock_;
  std::unique_ptr<class NodePorts> ports_;
};

}  // namespace tw
