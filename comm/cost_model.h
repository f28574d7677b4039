// Cost in seconds of collectives and exchanges, by the model of Hockney (1994) with one full-duplex
// port per node: a message occupies its sender's and its receiver's port for alpha + n beta. The
// formulas follow the steps as written in comm/ and sparsify/; docs/collectives.md names the
// sources of dense ones, docs/advise.md those of sparse ones. They are exact where P divides n,
// except that recursive_halving is exact only for powers of two and an upper bound for other P.
// Tests compare them with the collectives (cost_model_ranks_test.cpp) and the exchanges
// (exchange_seconds_ranks_test.cpp), run on a virtual clock.
#pragma once

#include <map>
#include <string>

#include "engine/core/registry.h"

namespace tw {

struct LinkCost {
  double alpha = 0;        ///< seconds per message
  double beta = 0;         ///< seconds per element of 4 bytes sent
  double gamma = 0;        ///< seconds per element added to another
  double merge = 0;        ///< seconds per sparse entry (index and value) merged into others
  double entry_bytes = 8;  ///< bytes of an encoded sparse entry
  /// Seconds per sparse entry sent.
  double entry() const { return beta * entry_bytes / 4; }
};

/// The link for messages of 16-bit values.
constexpr LinkCost half_messages(LinkCost link) {
  link.beta /= 2;
  return link;
}

/// Seconds of a dense collective over n elements of 4 bytes. Ranks >= 1.
using DenseCost = double (*)(const LinkCost&, int ranks, double n);
using DenseCosts = std::map<std::string, DenseCost, std::less<>>;
/// By the registered names (not aliases) of the collectives; `vendor` has no model.
const DenseCosts& broadcast_costs();
const DenseCosts& reduce_costs();
const DenseCosts& allreduce_costs();

/// Seconds of a sparse exchange in which each rank contributes k entries of a vector of d, with the
/// same indices on all ranks: their sum has k entries, too. Entries take LinkCost::entry() each,
/// plain floats beta.
using SparseCost = double (*)(const LinkCost&, int ranks, double d, double k);
using SparseCosts = std::map<std::string, SparseCost, std::less<>>;
/// By the registered names of the exchanges in sparsify/exchanges/.
const SparseCosts& sparse_costs();

/// Linear pipelining takes the time of `fixed + per_block m` messages for m blocks.
struct PipelineSteps {
  double fixed, per_block;
};
PipelineSteps lp_one_way_steps(int ranks);    ///< broadcast or reduce
PipelineSteps lp_allreduce_steps(int ranks);  ///< both ways at once; for m >= 2
/// The block length, in elements, with the least time for n elements: sqrt(per_block n alpha /
/// (fixed beta)), rounded so that all blocks have one length. 0 for n = 0.
double lp_best_block(const LinkCost& link, PipelineSteps steps, double n);
double lp_broadcast_seconds(const LinkCost& link, int ranks, double n, double block);
double lp_reduce_seconds(const LinkCost& link, int ranks, double n, double block);
double lp_allreduce_seconds(const LinkCost& link, int ranks, double n, double block);

}  // namespace tw
