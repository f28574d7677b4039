#include "apps/advise/brakes.h"

#include <algorithm>
#include <optional>

namespace tw {

namespace {

/// Seconds of an iteration on a topology.
struct Iteration {
  double dense = std::numeric_limits<double>::infinity();  ///< by the best exchange of dense SGD
  double fastest = dense;                                  ///< by any exchange
};

Iteration iteration(const Topology& topology, const Comparison& comparison, int ranks) {
  Iteration least;
  for (const Prediction& one : comparison.all()) {
    std::vector<double> rounds;
    for (Costs costs : comparison.rounds()) {
      costs.networks = network_costs(topology, {ranks});
      rounds.push_back(one.seconds(costs, ranks));
    }
    const double seconds = median(std::move(rounds));
    least.fastest = std::min(least.fastest, seconds);
    if (one.synchronous_dense()) least.dense = std::min(least.dense, seconds);
  }
  return least;
}

std::string text(const Iteration& of) {
  return fmt::format("{:.3g} ms dense and {:.3g} ms by the fastest exchange", 1e3 * of.dense,
                     1e3 * of.fastest);
}

/// The topology without a node; later ones take its number and those of its ranks.
Topology without_node(const Topology& topology, int node) {
  Topology rest = topology;
  const auto moved = [&](int one) { return one > node ? one - 1 : one; };
  rest.nodes.clear();
  for (const auto& [one, ports] : topology.nodes)
    if (one != node) rest.nodes[moved(one)] = ports;
  rest.pairs.clear();
  for (const auto& [pair, way] : topology.pairs)
    if (pair.first != node && pair.second != node)
      rest.pairs[{moved(pair.first), moved(pair.second)}] = way;
  rest.racks.clear();
  for (Topology::Ports rack : topology.racks) {
    if (rack.first > node) --rack.first;
    if (rack.last >= node) --rack.last;
    if (rack.first <= rack.last) rest.racks.push_back(rack);
  }
  rest.slow.clear();
  for (const auto& [rank, factor] : topology.slow) {
    const int of = topology.node_of(rank);
    if (of != node) rest.slow[of > node ? rank - topology.ranks_per_node : rank] = factor;
  }
  return rest;
}

/// A part of the topology, and the topology with the usual one in its place.
struct Suspect {
  std::string name;
  std::optional<int> node;  ///< whose ranks can be left out
  Topology eased;
};

std::vector<Suspect> links_of(const Topology& topology, int last) {
  std::vector<Suspect> all;
  for (const auto& [node, ports] : topology.nodes)
    if (node <= last) {
      all.push_back({fmt::format("the port of node {}", node), node, topology});
      all.back().eased.nodes.erase(node);
    }
  for (const auto& [pair, way] : topology.pairs)
    if (std::max(pair.first, pair.second) <= last) {
      all.push_back({fmt::format("the way from node {} to {}", pair.first, pair.second),
                     pair.second, topology});
      all.back().eased.pairs.erase(pair);
    }
  for (size_t i = 0; i < topology.racks.size(); ++i) {
    const Topology::Ports& rack = topology.racks[i];
    if (rack.first > last) continue;
    all.push_back(
        {fmt::format("the uplink of nodes {} to {}", rack.first, rack.last), {}, topology});
    all.back().eased.racks.erase(all.back().eased.racks.begin() + static_cast<ptrdiff_t>(i));
  }
  return all;
}

std::vector<Suspect> slow_ranks_of(const Topology& topology, int ranks) {
  std::vector<Suspect> all;
  for (const auto& [rank, factor] : topology.slow)
    if (rank < ranks) {
      all.push_back({fmt::format("rank {}", rank), topology.node_of(rank), topology});
      all.back().eased.slow.erase(rank);
    }
  return all;
}

}  // namespace

std::map<int, NetworkCost> network_costs(const Topology& topology,
                                         const std::vector<int64_t>& ranks) {
  std::map<int, NetworkCost> costs;
  for (const int64_t p : ranks) {
    const int count = static_cast<int>(p);
    const LinkCost link = topology.cost(count);
    costs[count] = {link.alpha, link.beta, topology.slowest(count)};
  }
  return costs;
}

std::vector<std::string> brakes(const Topology& topology, const Comparison& comparison, int ranks) {
  const Iteration now = iteration(topology, comparison, ranks);
  std::vector<std::string> sentences;
  const auto judge = [&](const std::vector<Suspect>& suspects) {
    const Suspect* worst = nullptr;
    Iteration eased = now;
    for (const Suspect& suspect : suspects)
      if (const Iteration one = iteration(suspect.eased, comparison, ranks);
          one.dense < eased.dense) {
        eased = one;
        worst = &suspect;
      }
    if (!worst || now.dense < kNoticeable * eased.dense) return;
    std::string sentence = fmt::format(
        "{} holds {} ranks back: an iteration takes {}; with the usual one in its place {}",
        worst->name, ranks, text(now), text(eased));
    if (const int rest = ranks - topology.ranks_per_node; worst->node && rest > 0)
      sentence += fmt::format(
          "; without node {}, on {} rank{}, {}", *worst->node, rest, rest == 1 ? "" : "s",
          text(iteration(without_node(topology, *worst->node), comparison, rest)));
    sentences.push_back(std::move(sentence));
  };
  judge(links_of(topology, topology.node_of(ranks - 1)));
  judge(slow_ranks_of(topology, ranks));
  return sentences;
}

}  // namespace tw
