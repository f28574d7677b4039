// What collectives and exchanges cost in seconds, by the model of Hockney (1994) with one port a
// node, full duplex: a message occupies its sender's and its receiver's port for alpha + n beta.
// The formulas are those of the steps as written in comm/ and sparsify/; docs/collectives.md names
// where each comes from. They hold exactly where P divides n; a test runs the steps themselves on
// a virtual clock and compares.
#pragma once

#include <map>
#include <string>

#include "engine/core/registry.h"

namespace tw {

struct LinkCost {
  double alpha = 0;  ///< seconds a message
  double beta = 0;   ///< seconds an element of 4 bytes
  double gamma = 0;  ///< seconds an element added to another
  double merge = 0;  ///< seconds a sparse entry (index and value) merged into others
};

/// Seconds of a dense collective over n elements. Ranks >= 1.
using DenseCost = double (*)(const LinkCost&, int ranks, double n);
using DenseCosts = std::map<std::string, DenseCost, std::less<>>;
/// By the names of the registries in comm/collectives.h (all but `native`, which is a black box).
const DenseCosts& broadcast_costs();
const DenseCosts& reduce_costs();
const DenseCosts& allreduce_costs();

/// Seconds of a sparse exchange in which every rank contributes k entries of a vector of d.
using SparseCost = double (*)(const LinkCost&, int ranks, double d, double k);
using SparseCosts = std::map<std::string, SparseCost, std::less<>>;
/// By the names of the exchanges in sparsify/.
const SparseCosts& sparse_costs();

/// Linear pipelining takes the time of `fixed + per_block m` messages for m blocks.
struct PipelineSteps {
  double fixed, per_block;
};
PipelineSteps lp_one_way_steps(int ranks);    ///< broadcast or reduce
PipelineSteps lp_allreduce_steps(int ranks);  ///< both ways at once; for m >= 2
/// The block, in elements, at which n elements take the least time: sqrt(per_block n alpha /
/// (fixed beta)), but so that all blocks are of one length. 0 for n = 0.
double lp_best_block(const LinkCost& wire, PipelineSteps steps, double n);
double lp_broadcast_seconds(const LinkCost& wire, int ranks, double n, double block);
double lp_reduce_seconds(const LinkCost& wire, int ranks, double n, double block);
double lp_allreduce_seconds(const LinkCost& wire, int ranks, double n, double block);

}  // namespace tw
