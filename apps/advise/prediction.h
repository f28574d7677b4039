// What an iteration would take with every algorithm on any number of ranks, by the cost model.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/cost_model.h"
#include "models/model.h"
#include "sparsify/buckets.h"

namespace tw {

/// Seconds of an optimizer step at one rank; with `hierarchical`, at one node.
struct StepCosts {
  double update = 0;    ///< selection and update
  double exchange = 0;  ///< what the exchange does alone: the sum of the own entries, of the node
};

/// What an iteration costs on each rank, whatever the number of ranks.
struct LocalCosts {
  double compute = 0;                       ///< seconds of forward and backward
  std::map<std::string, StepCosts> step{};  ///< by algorithm
};

/// What one exchange of an iteration carries on each rank.
struct Load {
  double d = 0;      ///< elements of the slice
  double k = 0;      ///< entries selected from it
  double dense = 0;  ///< elements of it that travel whole beside a sparse exchange
};

/// An algorithm with the dense collective it uses, if it uses one.
struct Prediction {
  std::string sparsifier{}, collective{};
  bool dense = false;
  double compute = 0;  ///< seconds of forward and backward
  StepCosts step{};    ///< seconds of the rest at one rank
  std::vector<Load> loads{};
  /// Seconds that the other ranks, or nodes, add to an exchange.
  std::function<double(const LinkCost&, int ranks, const Load&)> cost{};

  /// Seconds of an iteration's exchanges.
  double exchange_seconds(const LinkCost& wire, int ranks) const;
  /// Nothing overlaps: compute, selection, exchange and update one after the other.
  double seconds(const LinkCost& wire, int ranks) const {
    return compute + step.update + exchange_seconds(wire, ranks);
  }
  /// What the iteration of one dense rank takes, over what this takes: 1 is perfect scaling.
  double efficiency(const LinkCost& wire, int ranks, double one_dense_rank) const {
    return one_dense_rank / seconds(wire, ranks);
  }
};

/// Every registered algorithm the cost model knows, those that sum densely once for each
/// collective. `flat` > 0: a vector of that many elements in place of the model's.
std::vector<Prediction> candidates(const ParameterArena& arena, size_t flat, double density,
                                   const LocalCosts& local, const Settings& settings);

/// The bandwidth in bit/s above which the best dense candidate is faster than `sparse`: 0 when it
/// always is, infinity when it never is.
double break_even(const Prediction& sparse, const std::vector<Prediction>& all,
                  const LinkCost& wire, int ranks);

/// The fastest candidate that trains as well as dense SGD does.
const Prediction& best(const std::vector<Prediction>& all, const LinkCost& wire, int ranks);
const Prediction& best_dense(const std::vector<Prediction>& all, const LinkCost& wire, int ranks);

/// One sentence for each range of `ranks` (ascending) with the same fastest candidate.
std::vector<std::string> recommendations(const std::vector<Prediction>& all, const LinkCost& wire,
                                         const std::vector<int64_t>& ranks);

}  // namespace tw
