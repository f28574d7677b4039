// The cost model of messages (Hockney 1994), with one full-duplex port per node: a message occupies
// its sender's and its receiver's port for alpha + n beta. The seconds of a collective stand in its
// file in comm/collectives/, those of an exchange in its class in sparsify/exchanges/; each formula
// follows the steps as they are written there. docs/collectives.md names the sources of dense ones,
// docs/advise.md those of sparse ones. They are exact where P divides n, except that
// recursive_halving is exact only for powers of two and an upper bound for other P. Tests compare
// them with the collectives (cost_model_ranks_test.cpp) and the exchanges
// (exchange_seconds_ranks_test.cpp), run on a virtual clock.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace tw {

struct LinkCost {
  double alpha = 0;  ///< seconds per message
  double beta = 0;   ///< seconds per element of 4 bytes sent
  double gamma = 0;  ///< seconds per element added to another
  double merge = 0;  ///< seconds per sparse entry (index and value) merged into others
};

/// The link for messages of values of this many bytes.
constexpr LinkCost with_values_of(size_t bytes, LinkCost link) {
  link.beta *= static_cast<double>(bytes) / 4;
  return link;
}

/// Seconds of a dense collective over n elements of 4 bytes. Ranks >= 1.
using DenseCost = double (*)(const LinkCost&, int ranks, double n);
/// The seconds of a collective without a formula: NaN.
inline double unknown_seconds(const LinkCost&, int, double) {
  return std::numeric_limits<double>::quiet_NaN();
}

/// The rounds of a tree: ceil(log2 P).
inline double tree_rounds(int ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }
/// The share of a vector that belongs to the other ranks: (P - 1) / P.
constexpr double others_share(int ranks) { return (ranks - 1.0) / ranks; }

}  // namespace tw
