#include "comm/link/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/core/error.h"
#include "engine/core/rng.h"
#include "engine/core/settings.h"
#include "engine/core/text.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {
namespace {

using Json = nlohmann::json;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

constexpr double kLeastRate = 1, kMostRate = 1e15, kMostSeconds = 1e9, kMostFactor = 1e9;
constexpr int kMostNumber = (1 << 20) - 1;  // of nodes and ranks

/// `0.4ms` in seconds; negative unless the text is a number and one of the units.
double quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size() - end);
  const auto found = std::ranges::find(units, unit, &Unit::name);
  return error == std::errc{} && found != units.end() ? number * found->factor : -1;
}

double parse_seconds(std::string_view text, const std::string& name) {
  const double seconds = quantity(text, kTimes);
  check(seconds >= 0 && seconds <= kMostSeconds,
        "[link] {} is \"{}\"; expected a time of 0 to {:g} s, in us, ms or s", name, text,
        kMostSeconds);
  return seconds;
}

/// Exponential with a mean of 1.
double exponential(uint64_t seed, Purpose purpose, uint64_t id, uint64_t number) {
  const auto words =
      Philox(seed, purpose, static_cast<uint32_t>(number >> 32))(id, static_cast<uint32_t>(number));
  return -std::log1p(-static_cast<double>(uniform(words[0])));
}

/// An object of a topology's file, read key by key.
class Part {
 public:
  Part(const Json& json, const std::string& file, const std::string& name,
       const std::vector<std::string>& keys)
      : json_(json), where_(name.empty() ? file : fmt::format("{}: {}", file, name)) {
    check(json.is_object(), "[link] {} is {}; expected an object", where_, json.dump());
    for (const auto& [key, value] : json.items())
      check(std::ranges::find(keys, key) != keys.end(), "[link] {} has an unknown key {}{}", where_,
            key, nearest_hint(key, keys));
  }

  bool has(const char* key) const { return json_.contains(key); }
  const Json& operator[](const char* key) const { return json_.at(key); }
  PortSpec port(const char* key) const {
    const std::string given = text(key);
    try {
      return parse_port(given);
    } catch (const UserError& error) {
      fail<UserError>("{} (in {}: {})", error.what(), where_, key);
    }
  }
  double seconds(const char* key) const {
    return parse_seconds(text(key), fmt::format("{}: {}", where_, key));
  }
  int index(const char* key, int least = 0, int most = kMostNumber) const {
    const Json& value = at(key);
    check(
        value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most,
        "[link] {}: {} is {}; expected a whole number of {} to {}", where_, key, value.dump(),
        least, most);
    return value.get<int>();
  }
  double number_of(const Json& value, const std::string& key, double least) const {
    check(value.is_number() && value.get<double>() >= least && value.get<double>() <= kMostFactor,
          "[link] {}: {} is {}; expected a number of {} to {:g}", where_, key, value.dump(), least,
          kMostFactor);
    return value.get<double>();
  }
  /// The number of a node or rank that is the key of an object.
  int number_of_key(const char* object, const std::string& key) const {
    const int number = number_in<int>(key).value_or(-1);
    check(number >= 0 && number <= kMostNumber && std::to_string(number) == key,
          "[link] {}: {} has \"{}\"; expected a whole number of 0 to {}", where_, object, key,
          kMostNumber);
    return number;
  }
  /// The ports of `link`, or of `out` and `in`, of which one may be `usual`.
  Topology::Ports ports(const PortSpec& usual) const {
    check(has("link") != (has("out") || has("in")),
          "[link] {} needs either link or one or both of out and in", where_);
    Topology::Ports ports{.out = usual, .in = usual};
    if (has("link")) ports.out = ports.in = port("link");
    if (has("out")) ports.out = port("out");
    if (has("in")) ports.in = port("in");
    return ports;
  }

 private:
  const Json& at(const char* key) const {
    check(has(key), "[link] {} lacks the key {}", where_, key);
    return json_.at(key);
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  const Json& json_;
  std::string where_;
};

Topology read_topology(const std::string& file, int ranks_per_node) {
  const Json json = parse_json<Json>(read_text(file, kMostJson), file);
  const Part whole(json, file, "",
                   {"link", "ranks_per_node", "nodes", "racks", "pairs", "jitter", "outages",
                    "slow", "slow_by_step", "seed"});
  Topology topology{.usual = whole.port("link"), .ranks_per_node = ranks_per_node};
  if (whole.has("ranks_per_node")) topology.ranks_per_node = whole.index("ranks_per_node", 1, 4096);
  if (whole.has("jitter")) topology.jitter = whole.seconds("jitter");
  if (whole.has("slow_by_step"))
    topology.slow_by_step = whole.number_of(whole["slow_by_step"], "slow_by_step", 0);
  if (whole.has("seed")) topology.seed = static_cast<uint64_t>(whole.index("seed"));
  // the items of a list, or of an object with numbers as keys
  const auto each = [&](const char* key, bool list, const auto& body) {
    if (!whole.has(key)) return;
    check(list ? whole[key].is_array() : whole[key].is_object(), "[link] {}: {} is not {}", file,
          key, list ? "a list" : "an object");
    for (const auto& [number, item] : whole[key].items())
      body(whole.number_of_key(key, number), item);
  };
  each("nodes", false, [&](int node, const Json& item) {
    topology.nodes[node] =
        Part(item, file, fmt::format("node {}", node), {"link", "out", "in"}).ports(topology.usual);
  });
  each("racks", true, [&](int number, const Json& item) {
    const Part rack(item, file, fmt::format("rack {}", number),
                    {"first", "last", "link", "out", "in"});
    Topology::Ports uplink = rack.ports(topology.usual);
    uplink.first = rack.index("first");
    uplink.last = rack.index("last");
    check(uplink.first <= uplink.last &&
              (topology.racks.empty() || topology.racks.back().last < uplink.first),
          "[link] {}: racks are ranges of nodes, ascending, without a common node", file);
    topology.racks.push_back(uplink);
  });
  each("pairs", true, [&](int number, const Json& item) {
    const Part pair(item, file, fmt::format("pair {}", number), {"from", "to", "link"});
    const int from = pair.index("from"), to = pair.index("to");
    check(from != to && !topology.pairs.contains({from, to}),
          "[link] {}: the pair from node {} to {} {}", file, from, to,
          from == to ? "is one node" : "is there twice");
    topology.pairs[{from, to}] = pair.port("link");
  });
  each("outages", true, [&](int number, const Json& item) {
    const Part outage(item, file, fmt::format("outage {}", number), {"node", "at", "for"});
    const double begin = outage.seconds("at"), seconds = outage.seconds("for");
    check(seconds > 0, "[link] {}: outage {} lasts no time", file, number);
    const int node = outage.index("node");
    check(std::ranges::count(topology.outages, node, &Topology::Outage::node) < 32,  // see Port
          "[link] {}: node {} has more than 32 outages", file, node);
    topology.outages.push_back({node, begin, begin + seconds});
  });
  std::ranges::sort(topology.outages, {}, &Topology::Outage::begin);
  std::map<int, double> ends;  // a port takes outages one after another: those of a node not twice
  for (auto& [node, begin, end] : topology.outages) {
    begin = std::max(begin, ends[node]);
    end = ends[node] = std::max(begin, end);
  }
  each("slow", false, [&](int rank, const Json& item) {
    topology.slow[rank] = whole.number_of(item, fmt::format("slow of rank {}", rank), 1);
  });
  return topology;
}

}  // namespace

PortSpec parse_port(std::string_view text) {
  const size_t comma = text.find(',');
  check(comma < text.size(), "[link] link is \"{}\"; expected RATE,LATENCY as in 1Gbit,0.4ms",
        text);
  const std::string_view rate = text.substr(0, comma);
  const PortSpec port{.latency = parse_seconds(text.substr(comma + 1), "latency"),
                      .bits_per_second = quantity(rate, kRates)};
  check(port.bits_per_second >= kLeastRate && port.bits_per_second <= kMostRate,
        "[link] rate is \"{}\"; expected {:g} to {:g} bit per second, in bit, kbit, Mbit or Gbit",
        rate, kLeastRate, kMostRate);
  return port;
}

Topology parse_link(const std::string& text, int ranks_per_node) {
  check(ranks_per_node >= 1, "[link] ranks-per-node is {}; expected at least 1", ranks_per_node);
  if (text.ends_with(".json")) return read_topology(text, ranks_per_node);
  check(text.find(',') != std::string::npos,
        "[link] link is \"{}\"; expected RATE,LATENCY as in 1Gbit,0.4ms, or FILE.json", text);
  return {.usual = parse_port(text), .ranks_per_node = ranks_per_node};
}

Topology::Ports Topology::ports(int node) const {
  const auto own = nodes.find(node);
  return own == nodes.end() ? Ports{.out = usual, .in = usual} : own->second;
}

const Topology::Ports* Topology::rack_of(int node) const {
  const auto rack = std::ranges::find_if(
      racks, [&](const Ports& one) { return one.first <= node && node <= one.last; });
  return rack == racks.end() ? nullptr : &*rack;
}

double Topology::delay(int from, int to, uint64_t number) const {
  const uint64_t id = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
  return jitter == 0 ? 0 : jitter * exponential(seed, Purpose::delay, id, number);
}

double Topology::slowness(int rank, uint64_t step) const {
  const double factor = slow.contains(rank) ? slow.at(rank) : 1;
  const double share = exponential(seed, Purpose::slowness, static_cast<uint64_t>(rank), step);
  return factor * (1 + slow_by_step * share);
}

bool Topology::uniform() const {
  return nodes.empty() && racks.empty() && pairs.empty() && jitter == 0 && outages.empty();
}

LinkCost Topology::cost(int ranks) const {
  LinkCost worst;
  const auto include = [&](const PortSpec& port) {
    worst.alpha = std::max(worst.alpha, port.cost().alpha);
    worst.beta = std::max(worst.beta, port.cost().beta);
  };
  const int last = node_of(std::max(ranks, 1) - 1);
  if (last == 0 && ranks > 1) return {};
  for (int node = 0; node <= last; ++node) {
    include(ports(node).out);
    include(ports(node).in);
  }
  for (const Ports& rack : racks)
    if (rack.first <= last && (rack.first > 0 || rack.last < last)) {
      // all nodes of the rack at once
      const double nodes_in_run = std::min(rack.last, last) - rack.first + 1;
      for (PortSpec uplink : {rack.out, rack.in}) {
        uplink.bits_per_second /= nodes_in_run;
        include(uplink);
      }
    }
  for (const auto& [pair, way] : pairs)
    if (std::max(pair.first, pair.second) <= last) include(way);
  worst.alpha += jitter;
  return worst;
}

double Topology::slowest(int ranks) const {
  std::map<double, int> groups{{1, ranks}};  // numbers of ranks by factor
  for (const auto& [rank, factor] : slow)
    if (rank < ranks) --groups[1], ++groups[factor];
  const double least = groups.rbegin()->first;
  if (slow_by_step == 0) return least;
  // the integral of the chance that a rank is slower, from the logarithms that each is faster
  constexpr int kParts = 4096;
  const double part = least * slow_by_step * (40 + std::log(ranks)) / kParts;
  double mean = least;
  for (int i = 0; i < kParts; ++i) {
    double logs = 0;
    for (const auto& [factor, n] : groups)
      logs += n * std::log1p(-std::exp((1 - (least + (i + 0.5) * part) / factor) / slow_by_step));
    mean -= part * std::expm1(logs);
  }
  return mean;
}

}  // namespace tw
