// Topology: the ports of the nodes of a cluster, and how slow its ranks are. Of a link RATE,LATENCY
// all ports are alike; a file of JSON names what is different:
//
//   {"link": "1Gbit,0.4ms",                      every port
//    "ranks_per_node": 2,
//    "nodes": {"3": {"out": "100Mbit,0.4ms", "in": "1Gbit,0.4ms"}},        or "link" for both
//    "racks": [{"first": 0, "last": 1, "link": "10Gbit,10us"}],            uplinks of nodes 0 to 1
//    "pairs": [{"from": 0, "to": 3, "link": "100Mbit,50ms"}],              of nodes, one direction
//    "jitter": "0.1ms",                          mean of an exponential delay of each message
//    "outages": [{"node": 3, "at": "10s", "for": "2s"}],
//    "slow": {"5": 1.5},                         factor of a rank's time of computing
//    "slow_by_step": 0.2,                        mean of an exponential share, by rank and step
//    "seed": 1}                                  of the delays and shares
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/cost_model.h"

namespace tw {

/// One direction of a port, or a way between two nodes.
struct PortSpec {
  double latency = 0;          ///< seconds per message
  double bits_per_second = 0;  ///< above 0

  double seconds(size_t bytes) const {
    return latency + 8 * static_cast<double>(bytes) / bits_per_second;
  }
  LinkCost cost() const { return {.alpha = latency, .beta = 8 * sizeof(float) / bits_per_second}; }
};

struct Topology {
  /// The ports of a node, or the uplink of a rack of nodes `first` to `last`.
  struct Ports {
    PortSpec out, in;
    int first = 0, last = 0;
  };
  struct Outage {
    int node;
    double begin, end;
  };

  PortSpec usual;
  int ranks_per_node = 1;  ///< ranks 0 .. n-1 share the first node's ports, and so on
  std::map<int, Ports> nodes{};
  std::vector<Ports> racks{};
  std::map<std::pair<int, int>, PortSpec> pairs{};
  double jitter = 0;
  std::vector<Outage> outages{};
  std::map<int, double> slow{};
  double slow_by_step = 0;
  uint64_t seed = 1;

  int node_of(int rank) const { return rank / ranks_per_node; }
  Ports ports(int node) const;
  /// The rack of a node in `racks`, or null.
  const Ports* rack_of(int node) const;
  /// Seconds that message `number` of `from` to `to` arrives late.
  double delay(int from, int to, uint64_t number) const;
  /// How many times as long as usual rank's computing takes in a step; at least 1.
  double slowness(int rank, uint64_t step) const;
  bool has_slow_ranks() const { return slow_by_step > 0 || !slow.empty(); }
  /// Whether all ports are alike and nothing is late, as of a link RATE,LATENCY.
  bool uniform() const;

  /// The slowest port, way, and share of an uplink of the nodes of the first `ranks` ranks, with
  /// the mean delay in alpha and without outages. Formulas for equal ports then give too much where
  /// few messages use the slowest, and too little where messages wait at several, or for delays.
  /// Ranks that share a node's port count as if each had its own; 0 where one node has them all.
  LinkCost cost(int ranks) const;
  /// The mean over steps of the slowness of the slowest of `ranks` ranks, at least one.
  double slowest(int ranks) const;
};

/// Parses RATE,LATENCY as in `1Gbit,0.4ms`. Rates are in bit, kbit, Mbit or Gbit per second,
/// latencies in us, ms or s. UserError on anything else.
PortSpec parse_port(std::string_view text);

/// A link RATE,LATENCY, or the file of this name if it ends with .json, which may have a number of
/// ranks a node of its own. UserError on malformed text, unknown keys, and values out of range.
Topology parse_link(const std::string& text, int ranks_per_node = 1);

}  // namespace tw
