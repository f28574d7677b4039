#include "apps/advise/brakes.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <set>

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

/// Parts of a topology that are as slow as each other.
struct Suspects {
  std::string names;
  std::vector<int> nodes;  ///< whose ranks can be left out, ascending; empty: not these alone
  Topology eased;          ///< with the usual ones in their places
};

/// Collects the slowest parts of a kind.
class Slowest {
 public:
  Slowest(const Topology& topology, std::string kind)
      : topology_(topology), found_{.names = std::move(kind), .nodes = {}, .eased = topology} {}

  /// A part that takes so long. `node`: whose ranks can be left out. `ease` puts the usual one in
  /// its place.
  template <class Ease>
  void add(const std::string& name, double seconds, std::optional<int> node, const Ease& ease) {
    if (seconds < kSame * most_) return;
    if (seconds > most_ / kSame) {
      found_ = {.names = found_.names.substr(0, kind_), .nodes = {}, .eased = topology_};
      count_ = 0;
      most_ = seconds;
    }
    found_.names += (count_++ == 0 ? " " : ", ") + name;
    if (node) found_.nodes.push_back(*node);
    ease(found_.eased);
  }
  /// Empty where no part is slower than `usual`.
  std::optional<Suspects> found(double usual) const {
    return most_ > usual / kSame ? std::optional(found_) : std::nullopt;
  }

 private:
  static constexpr double kSame = 0.99;

  const Topology& topology_;
  Suspects found_;
  size_t kind_ = found_.names.size(), count_ = 0;
  double most_ = 0;
};

constexpr size_t kMessage = size_t{1} << 20;  // bytes that ports are compared by

std::vector<Suspects> suspects_of(const Topology& topology, int ranks) {
  const int last = topology.node_of(ranks - 1);
  const double usual = topology.usual.seconds(kMessage);
  const auto slower = [](const Topology::Ports& ports, size_t bytes) {
    return std::max(ports.out.seconds(bytes), ports.in.seconds(bytes));
  };
  Slowest ports(topology, "the port of node"), ways(topology, "the way between nodes"),
      uplinks(topology, "the uplink of nodes"), workers(topology, "rank");
  for (const auto& [node, own] : topology.nodes)
    if (node <= last)
      ports.add(std::to_string(node), slower(own, kMessage), node,
                [&, one = node](Topology& eased) { eased.nodes.erase(one); });
  for (const auto& [pair, way] : topology.pairs)
    if (std::max(pair.first, pair.second) <= last)
      ways.add(fmt::format("{} and {}", pair.first, pair.second), way.seconds(kMessage),
               pair.second, [&, one = pair](Topology& eased) { eased.pairs.erase(one); });
  for (const Topology::Ports& rack : topology.racks)
    if (rack.first <= last)
      uplinks.add(fmt::format("{} to {}", rack.first, rack.last),
                  slower(rack, kMessage * static_cast<size_t>(rack.last - rack.first + 1)), {},
                  [&, first = rack.first](Topology& eased) {
                    std::erase_if(eased.racks, [&](const auto& one) { return one.first == first; });
                  });
  for (const auto& [rank, factor] : topology.slow)
    if (rank < ranks)
      workers.add(std::to_string(rank), factor, topology.node_of(rank),
                  [&, one = rank](Topology& eased) { eased.slow.erase(one); });
  std::vector<Suspects> all;
  for (const auto& found :
       {ports.found(usual), ways.found(usual), uplinks.found(usual), workers.found(1)})
    if (found) all.push_back(*found);
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
  for (const Suspects& suspects : suspects_of(topology, ranks)) {
    const Iteration eased = iteration(suspects.eased, comparison, ranks);
    if (now.dense < kNoticeable * eased.dense) continue;
    std::string sentence = fmt::format(
        "{} holds {} ranks back: an iteration takes {}; with the usual one in its place {}",
        suspects.names, ranks, text(now), text(eased));
    Topology rest = topology;
    std::set<int> left_out(suspects.nodes.begin(), suspects.nodes.end());
    int count = ranks;
    for (int rank = 0; rank < ranks; ++rank) count -= left_out.contains(topology.node_of(rank));
    for (const int node : std::views::reverse(left_out)) rest = without_node(rest, node);
    if (count < ranks && count > 0)
      sentence += fmt::format("; without {}, on {} rank{}, {}",
                              left_out.size() == 1 ? "its node" : "their nodes", count,
                              count == 1 ? "" : "s", text(iteration(rest, comparison, count)));
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace tw
