// What holds the ranks of a topology back: its slowest links and its slowest ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/advise/comparison.h"
#include "comm/link/topology.h"

namespace tw {

/// The costs of each of these numbers of ranks, the first ones of the topology.
std::map<int, NetworkCost> network_costs(const Topology& topology,
                                         const std::vector<int64_t>& ranks);

/// What costs dense SGD on the first `ranks` ranks more than 2 %, a sentence for links that
/// together do so, the slowest first, then for the next, and the same for ranks: what an iteration
/// takes with them, with usual ones in their places, and without the ranks of their nodes.
std::vector<std::string> brakes(const Topology& topology, const Comparison& comparison, int ranks);

}  // namespace tw
