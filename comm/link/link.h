// Slow links, emulated: what a thin wire between the nodes would cost, on any transport.
//
// One port a node, full duplex, as in comm/cost_model.h: a message of n bytes occupies its sender's
// outgoing and its receiver's incoming port for latency + n / rate. Messages queue at a port; the
// sender goes on when its message has left, the receiver when it has arrived. Between ranks of one
// node messages are free.
#pragma once

#include <memory>
#include <string_view>

#include "comm/communicator.h"
#include "comm/link/link_clock.h"

namespace tw {

struct LinkSpec {
  double latency = 0;          ///< seconds a message
  double bits_per_second = 0;  ///< above 0
  int ranks_per_node = 1;      ///< ranks 0 .. n-1 share the first node's ports, and so on

  double seconds(size_t bytes) const {
    return latency + 8 * static_cast<double>(bytes) / bits_per_second;
  }
};

/// RATE,LATENCY as in `1Gbit,0.4ms`. Rates in bit, kbit, Mbit or Gbit a second, latencies in us, ms
/// or s. UserError on anything else.
LinkSpec parse_link(std::string_view text, int ranks_per_node = 1);

/// Any communicator, with emulated links between its nodes. bytes_sent() counts payload alone.
///
/// Results on the simulated clock are exact, whatever the machine does meanwhile; only where
/// several ranks of one node compete for its port, who comes first is left to the machine.
class LinkCommunicator : public Communicator {
 public:
  /// Collective. `inner` outlives this; what else uses it takes turns with this. UserError when
  /// ranks that are to share a node, or a real clock, do not run on one machine.
  LinkCommunicator(Context& ctx, Communicator& inner, const LinkSpec& link,
                   LinkTime time = LinkTime::real);
  ~LinkCommunicator() override;

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* transport() const override { return transport_.c_str(); }
  double now() const override { return clock_->now(); }
  void abort(const char* reason, int code) override { inner_.abort(reason, code); }
  void check_peers() const override { inner_.check_peers(); }
  int gpu() const override { return inner_.gpu(); }
  const LinkSpec& spec() const { return link_; }

  /// Seconds of work that stand for a computation: slept, or added to the simulated clock.
  void advance(double seconds) { clock_->wait_until(clock_->now() + seconds); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  int node(int rank) const { return rank / link_.ranks_per_node; }
  bool inside(int peer) const { return node(peer) == node(rank()); }

  Communicator& inner_;
  LinkSpec link_;
  std::string transport_;
  std::unique_ptr<LinkClock> clock_;
  std::unique_ptr<class NodePorts> ports_;
};

}  // namespace tw
