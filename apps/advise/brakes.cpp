#include "apps/advise/brakes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "apps/common/console.h"

namespace tw {

namespace {

/// Seconds of an iteration on a topology.
struct Iteration {
  double dense = std::numeric_limits<double>::infinity();  ///< by the best exchange of dense SGD
  double fastest = dense;                                  ///< by any exchange
};

Iteration iteration(const Topology& topology, const Comparison& comparison, int ranks) {
  const std::map<int, NetworkCost> networks = network_costs(topology, {ranks});
  Rounds rounds = comparison.rounds();
  for (Costs& costs : rounds) costs.networks = networks;
  Iteration least;
  for (const Prediction& one : comparison.all()) {
    std::vector<double> all;
    for (const Costs& costs : rounds) all.push_back(one.seconds(costs, ranks));
    const double seconds = median(std::move(all));
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

/// What differs from the usual in one place of a topology.
struct Part {
  std::string kind, kinds, name;  ///< of one, of several
  std::function<void(Topology&)> put;
  std::optional<int> node{};  ///< whose ranks can be left out
  double seconds = 0;  ///< of an iteration of dense SGD where nothing else of its kinds differs
};

/// The links, and the ranks, with the topology without them: the slowest of them hide the others.
std::array<std::pair<Topology, std::vector<Part>>, 2> parts_of(const Topology& topology) {
  Topology usual_links = topology, usual_ranks = topology;
  usual_links.nodes.clear();
  usual_links.pairs.clear();
  usual_links.racks.clear();
  usual_links.jitter = usual_ranks.slow_by_step = 0;
  usual_ranks.slow.clear();
  std::vector<Part> links, ranks;
  for (const auto& one : topology.nodes)
    links.push_back({"the port of node", "the ports of nodes", std::to_string(one.first),
                     [=](Topology& to) { to.nodes.insert(one); }, one.first});
  for (const auto& one : topology.pairs)
    links.push_back({"the way from node", "the ways from nodes",
                     fmt::format("{} to {}", one.first.first, one.first.second),
                     [=](Topology& to) { to.pairs.insert(one); }, one.first.second});
  for (const Topology::Ports& rack : topology.racks)
    links.push_back({"the uplink of nodes", "the uplinks of nodes",
                     fmt::format("{} to {}", rack.first, rack.last),
                     [=](Topology& to) { to.racks.push_back(rack); }});
  links.push_back({"jitter of", "", fmt::format("{:g} ms", 1e3 * topology.jitter),
                   [&](Topology& to) { to.jitter = topology.jitter; }});
  for (const auto& one : topology.slow)
    ranks.push_back({"rank", "ranks", std::to_string(one.first),
                     [=](Topology& to) { to.slow.insert(one); }, topology.node_of(one.first)});
  ranks.push_back({"slow_by_step", "", fmt::format("{:g}", topology.slow_by_step),
                   [&](Topology& to) { to.slow_by_step = topology.slow_by_step; }});
  return {{{usual_links, links}, {usual_ranks, ranks}}};
}

/// `the ports of nodes 3, 5 and jitter of 1 ms`
std::string names_of(std::span<const Part> parts) {
  std::string names;
  for (size_t i = 0, end = 0; i < parts.size(); i = end) {
    const Part& first = parts[i];
    for (end = i + 1; end < parts.size() && parts[end].kind == first.kind;) ++end;
    names += fmt::format("{}{} {}", i > 0 ? " and " : "", end - i > 1 ? first.kinds : first.kind,
                         first.name);
    while (++i < end) names += ", " + parts[i].name;
  }
  return names;
}

/// `; without node 2, on 3 ranks, ...`; empty where that does not remove all of these parts.
std::string without_nodes(std::span<const Part> parts, Topology topology,
                          const Comparison& comparison, int ranks) {
  std::set<int> nodes;
  for (const Part& part : parts) {
    if (!part.node) return "";
    nodes.insert(*part.node);
  }
  int count = ranks;
  for (int rank = 0; rank < ranks; ++rank) count -= nodes.contains(topology.node_of(rank));
  if (count == 0) return "";
  for (const int node : std::views::reverse(nodes)) topology = without_node(topology, node);
  return fmt::format("; without node{} {}, on {}, {}", nodes.size() == 1 ? "" : "s",
                     fmt::join(nodes, ", "), counted(count, "rank"),
                     text(iteration(topology, comparison, count)));
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
  constexpr int kMost = 3;  // sentences on links, and on ranks
  std::vector<std::string> sentences;
  for (auto& [usual, parts] : parts_of(topology)) {
    const auto with = [&, base = &usual](std::span<const Part> some) {
      Topology made = *base;
      for (const Part& part : some) part.put(made);
      return made;
    };
    for (Part& part : parts) part.seconds = iteration(with({&part, 1}), comparison, ranks).dense;
    const double least = iteration(usual, comparison, ranks).dense;
    std::erase_if(parts, [&](const Part& part) { return part.seconds <= least; });
    std::ranges::stable_sort(parts, std::greater{}, &Part::seconds);
    std::span<const Part> left = parts;
    Iteration now = iteration(with(left), comparison, ranks);
    for (size_t n = 1, said = 0; n <= left.size() && said < kMost; ++n) {
      const Iteration eased = iteration(with(left.subspan(n)), comparison, ranks);
      if (now.dense < kNoticeable * eased.dense) continue;
      sentences.push_back(fmt::format("{}{} {} {} back: an iteration takes {}; {} {}",
                                      said++ > 0 ? "then " : "", names_of(left.first(n)),
                                      n == 1 ? "holds" : "hold", counted(ranks, "rank"), text(now),
                                      n > 1          ? "with usual ones in their places"
                                      : left[0].node ? "with the usual one in its place"
                                                     : "without it",
                                      text(eased)) +
                          without_nodes(left.first(n), with(left), comparison, ranks));
      left = left.subspan(std::exchange(n, 0));
      now = eased;
    }
  }
  return sentences;
}

}  // namespace tw
