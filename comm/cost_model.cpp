#include "comm/cost_model.h"

#include <algorithm>
#include <cmath>

namespace tw {

namespace {

double rounds(int ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }
/// The share of a vector that belongs to the other ranks: (P - 1) / P.
double others(int ranks) { return (ranks - 1.0) / ranks; }
double blocks(double n, double block) { return n > 0 ? std::ceil(n / block) : 0; }

// Patarasuk & Yuan 2009
double ring_allreduce(const LinkCost& link, int ranks, double n) {
  return 2 * (ranks - 1) * link.alpha + others(ranks) * n * (2 * link.beta + link.gamma);
}

// Thakur, Rabenseifner & Gropp 2005
double binomial_broadcast(const LinkCost& link, int ranks, double n) {
  return rounds(ranks) * (link.alpha + n * link.beta);
}
double binomial_reduce(const LinkCost& link, int ranks, double n) {
  return rounds(ranks) * (link.alpha + n * (link.beta + link.gamma));
}
double binomial_allreduce(const LinkCost& link, int ranks, double n) {
  return binomial_reduce(link, ranks, n) + binomial_broadcast(link, ranks, n);
}

// Thakur et al., with Bruck's allgather instead of a ring in the broadcast
double halving_broadcast(const LinkCost& link, int ranks, double n) {
  return 2 * (rounds(ranks) * link.alpha + others(ranks) * n * link.beta);
}
double halving_reduce(const LinkCost& link, int ranks, double n) {
  return halving_broadcast(link, ranks, n) + others(ranks) * n * link.gamma;
}

// the pipeline of Wang et al. 2017 (arXiv 1611.04255); its steps are counted here
double lp_broadcast(const LinkCost& link, int ranks, double n) {
  return lp_broadcast_seconds(link, ranks, n, lp_best_block(link, lp_one_way_steps(ranks), n));
}
double lp_reduce(const LinkCost& link, int ranks, double n) {
  return lp_reduce_seconds(link, ranks, n, lp_best_block(link, lp_one_way_steps(ranks), n));
}
double lp_allreduce(const LinkCost& link, int ranks, double n) {
  return lp_allreduce_seconds(link, ranks, n, lp_best_block(link, lp_allreduce_steps(ranks), n));
}

// Bruck et al. 1997; every rank then sums all entries
double sparse_allgather(const LinkCost& link, int ranks, double, double k) {
  return rounds(ranks) * link.alpha + (ranks - 1) * k * (link.entry() + link.merge);
}

// hclhkbu/gtopkssgd, scripts/icdcs2019/communication.py: up a tree that merges, and down again
double gtopk_tree(const LinkCost& link, int ranks, double, double k) {
  return rounds(ranks) * 2 * (link.alpha + k * (link.entry() + link.merge));
}

// Li & Hoefler 2022 (arXiv 2201.07598), a step without exact thresholds and with k entries per
// rank: entries to the owner of their region, the sums from there by an allgather
double oktopk(const LinkCost& link, int ranks, double, double k) {
  if (ranks == 1) return 0;
  return (ranks - 1 + rounds(ranks)) * link.alpha +
         others(ranks) * 2 * k * (link.entry() + link.merge);
}

// all ranks have the same indices: only values travel, around a ring
double shared_index(const LinkCost& link, int ranks, double, double k) {
  return ring_allreduce(link, ranks, k);
}

// Chen et al. 2020 (arXiv 2104.11125): one rank's indices to all, then the values around a ring
double leader_indices(const LinkCost& link, int ranks, double, double k) {
  return rounds(ranks) * (link.alpha + k * link.beta) + ring_allreduce(link, ranks, k);
}

}  // namespace

const SparseCosts& sparse_costs() {
  static const SparseCosts costs{
      {"allgather", sparse_allgather}, {"gtopk", gtopk_tree},    {"oktopk", oktopk},
      {"exact", sparse_allgather},     {"shared", shared_index}, {"scalecom", leader_indices}};
  return costs;
}

const DenseCosts& broadcast_costs() {
  static const DenseCosts costs{{"recursive_halving", halving_broadcast},
                                {"linear_pipeline", lp_broadcast},
                                {"binomial_tree", binomial_broadcast}};
  return costs;
}

const DenseCosts& reduce_costs() {
  static const DenseCosts costs{{"recursive_halving", halving_reduce},
                                {"linear_pipeline", lp_reduce},
                                {"binomial_tree", binomial_reduce}};
  return costs;
}

const DenseCosts& allreduce_costs() {
  static const DenseCosts costs{{"recursive_halving", halving_reduce},
                                {"linear_pipeline", lp_allreduce},
                                {"binomial_tree", binomial_allreduce},
                                {"ring", ring_allreduce}};
  return costs;
}

PipelineSteps lp_one_way_steps(int ranks) { return {std::max(0.0, ranks - 2.0), 1}; }

// two ranks have one link, which swaps a block up and a block down in one step; with more ranks, a
// rank serves its two links in turn
PipelineSteps lp_allreduce_steps(int ranks) {
  return ranks == 2 ? PipelineSteps{1, 1} : PipelineSteps{2.0 * ranks - 5, 2};
}

double lp_best_block(const LinkCost& link, PipelineSteps steps, double n) {
  const double each = steps.fixed * link.beta;
  const double best = each > 0 ? std::sqrt(steps.per_block * n * link.alpha / each) : n;
  const double count = std::round(n / std::clamp(best, 1.0, std::max(1.0, n)));
  return std::ceil(n / std::max(1.0, count));
}

double lp_broadcast_seconds(const LinkCost& link, int ranks, double n, double block) {
  if (ranks == 1 || n == 0) return 0;
  // a shorter last block shortens the last hop only
  return (ranks - 2) * (link.alpha + std::min(n, block) * link.beta) +
         blocks(n, block) * link.alpha + n * link.beta;
}

double lp_reduce_seconds(const LinkCost& link, int ranks, double n, double block) {
  const LinkCost adding{.alpha = link.alpha, .beta = link.beta + link.gamma};
  return lp_broadcast_seconds(adding, ranks, n, block);
}

double lp_allreduce_seconds(const LinkCost& link, int ranks, double n, double block) {
  if (ranks == 1 || n == 0) return 0;
  const double length = std::min(n, block);
  const double adding = ((ranks - 2) * length + n) * link.gamma;
  // a single block goes up, then comes down
  if (block >= n) return 2 * (ranks - 1) * (link.alpha + n * link.beta) + adding;
  const auto [fixed, per_block] = lp_allreduce_steps(ranks);
  return fixed * (link.alpha + length * link.beta) +
         per_block * (blocks(n, block) * link.alpha + n * link.beta) + adding;
}

}  // namespace tw
