#include "comm/cost_model.h"

#include <algorithm>
#include <cmath>

namespace tw {

namespace {

double rounds(int ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }
/// The part of a vector that all the others have.
double others(int ranks) { return (ranks - 1.0) / ranks; }
double blocks(double n, double block) { return n > 0 ? std::ceil(n / block) : 0; }

// Patarasuk & Yuan 2009
double ring_allreduce(const Wire& w, int ranks, double n) {
  return 2 * (ranks - 1) * w.alpha + others(ranks) * n * (2 * w.beta + w.gamma);
}

// Thakur, Rabenseifner & Gropp 2005, section 4
double mst_broadcast(const Wire& w, int ranks, double n) {
  return rounds(ranks) * (w.alpha + n * w.beta);
}
double mst_reduce(const Wire& w, int ranks, double n) {
  return rounds(ranks) * (w.alpha + n * (w.beta + w.gamma));
}
double mst_allreduce(const Wire& w, int ranks, double n) {
  return mst_reduce(w, ranks, n) + mst_broadcast(w, ranks, n);
}

// the same, with Bruck's allgather instead of a ring in the broadcast
double be_broadcast(const Wire& w, int ranks, double n) {
  return 2 * (rounds(ranks) * w.alpha + others(ranks) * n * w.beta);
}
double be_reduce(const Wire& w, int ranks, double n) {
  return be_broadcast(w, ranks, n) + others(ranks) * n * w.gamma;
}

// Wang et al. 2017 (arXiv 1611.04255), section 3, with the exact number of steps
double lp_broadcast(const Wire& w, int ranks, double n) {
  return lp_broadcast_seconds(w, ranks, n, lp_best_block(w, lp_one_way_steps(ranks), n));
}
double lp_reduce(const Wire& w, int ranks, double n) {
  return lp_reduce_seconds(w, ranks, n, lp_best_block(w, lp_one_way_steps(ranks), n));
}
double lp_allreduce(const Wire& w, int ranks, double n) {
  return lp_allreduce_seconds(w, ranks, n, lp_best_block(w, lp_allreduce_steps(ranks), n));
}

}  // namespace

const DenseCosts& broadcast_costs() {
  static const DenseCosts costs{{"be", be_broadcast}, {"lp", lp_broadcast}, {"mst", mst_broadcast}};
  return costs;
}

const DenseCosts& reduce_costs() {
  static const DenseCosts costs{{"be", be_reduce}, {"lp", lp_reduce}, {"mst", mst_reduce}};
  return costs;
}

const DenseCosts& allreduce_costs() {
  static const DenseCosts costs{
      {"be", be_reduce}, {"lp", lp_allreduce}, {"mst", mst_allreduce}, {"ring", ring_allreduce}};
  return costs;
}

PipelineSteps lp_one_way_steps(int ranks) { return {std::max(0.0, ranks - 2.0), 1}; }

// with two ranks there is one link, which swaps a block up and a block down in one step; with more,
// a node serves its two links in turn
PipelineSteps lp_allreduce_steps(int ranks) {
  return ranks == 2 ? PipelineSteps{1, 1} : PipelineSteps{2.0 * ranks - 3, 2};
}

double lp_best_block(const Wire& wire, PipelineSteps steps, double n) {
  const double each = steps.fixed * wire.beta;
  const double best = each > 0 ? std::sqrt(steps.per_block * n * wire.alpha / each) : n;
  return std::clamp(std::round(best), 1.0, std::max(1.0, n));
}

double lp_broadcast_seconds(const Wire& wire, int ranks, double n, double block) {
  const double m = blocks(n, block);
  if (ranks == 1 || m == 0) return 0;
  return (ranks - 2 + m) * (wire.alpha + std::min(n, block) * wire.beta);
}

double lp_reduce_seconds(const Wire& wire, int ranks, double n, double block) {
  const double m = blocks(n, block);
  if (ranks == 1 || m == 0) return 0;
  return (ranks - 2 + m) * (wire.alpha + std::min(n, block) * (wire.beta + wire.gamma));
}

double lp_allreduce_seconds(const Wire& wire, int ranks, double n, double block) {
  const double m = blocks(n, block), length = std::min(n, block);
  if (ranks == 1 || m == 0) return 0;
  const auto [fixed, per_block] = lp_allreduce_steps(ranks);
  // one block alone meets no other: no step is lost between the two ways
  const double steps = m == 1 ? 2.0 * (ranks - 1) : fixed + per_block * m;
  return steps * (wire.alpha + length * wire.beta) + (ranks - 2 + m) * length * wire.gamma;
}

}  // namespace tw
