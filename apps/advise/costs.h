// Costs: what an iteration costs on this machine and link, before the number of ranks is known.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/common/measurements.h"
#include "comm/cost_model.h"

namespace tw {

inline constexpr double kBitsAnElement = 32;

/// Seconds of an optimizer step on one rank; with `hierarchical`, in one node.
struct StepCosts {
  double update = 0;    ///< selection and update
  double exchange = 0;  ///< exchange of this rank alone, or within the node
};

/// What a topology (comm/link/topology.h) makes of a number of ranks.
struct NetworkCost {
  double alpha = 0, beta = 0;  ///< of the slowest port
  double slowness = 1;         ///< of the slowest rank's computing
};

/// All costs, as one round of measurements found them, or as they were given.
struct Costs {
  ComputeProfile compute{};
  std::map<std::string, StepCosts> step{};  ///< by sparsifier
  LinkCost link{};
  std::map<int, NetworkCost> networks{};  ///< by number of ranks; empty: all ports are like `link`
  bool busy = false;                      ///< other programs took time from the measurement

  LinkCost link_of(int ranks) const {
    const auto own = networks.find(ranks);
    if (own == networks.end()) return link;
    return {own->second.alpha, own->second.beta, link.gamma, link.merge};
  }
  /// Bits per second of the slowest port.
  double bandwidth(int ranks) const { return kBitsAnElement / link_of(ranks).beta; }
  void set_bandwidth(double bits) {
    link.beta = kBitsAnElement / bits;
    for (auto& [ranks, network] : networks) network.beta = link.beta;
  }
  double slowness(int ranks) const {
    const auto own = networks.find(ranks);
    return own == networks.end() ? 1 : own->second.slowness;
  }
  /// Seconds of forward and backward of the slowest of `ranks` ranks.
  double compute_seconds(int ranks) const { return compute.seconds() * slowness(ranks); }
  /// Seconds of selection and update with this sparsifier; 0 if unknown.
  double update(const std::string& sparsifier) const {
    const auto known = step.find(sparsifier);
    return known == step.end() ? 0 : known->second.update;
  }
};

/// Several rounds. A quantity computed in each round has the spread of the measurement; what
/// disturbs a whole round cancels in ratios.
using Rounds = std::vector<Costs>;

}  // namespace tw
