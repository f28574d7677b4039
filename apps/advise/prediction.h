// Predicts the time of an iteration for every sparsifier and number of ranks by the cost model.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/cost_model.h"
#include "models/model.h"
#include "sparsify/buckets.h"
#include "sparsify/selector.h"

namespace tw {

/// Seconds of an optimizer step on one rank; with `hierarchical`, in one node.
struct StepCosts {
  double update = 0;    ///< selection and update
  double exchange = 0;  ///< exchange of this rank alone, or within the node
};

/// Costs of an iteration that do not depend on the number of ranks.
struct LocalCosts {
  double compute = 0;                       ///< seconds of forward and backward
  std::map<std::string, StepCosts> step{};  ///< by sparsifier
};

/// What a rank sends in one exchange.
struct Load {
  double d = 0;      ///< elements of the bucket
  double k = 0;      ///< entries that the selector is asked for
  double dense = 0;  ///< elements of the bucket that are summed densely
  DenseSums sums{};  ///< elements that a sparsifier without a selector sums
};

/// The costs of a sparsifier, with the dense collective that it uses, if any.
struct Prediction {
  std::string sparsifier{}, collective{};
  ValueFormat values = ValueFormat::f32;  ///< of the messages of `collective`
  bool dense = false;
  double compute = 0;  ///< seconds of forward and backward
  StepCosts step{};    ///< seconds of the optimizer step on one rank
  std::vector<Load> loads{};
  Volume volume = Volume::exactly_k;  ///< how many entries it sends when asked for k
  /// Seconds that communication with the other ranks, or nodes, adds to an exchange.
  std::function<double(const LinkCost&, int ranks, const Load&)> cost{};

  /// The collective as tables show it: `ring`, `ring bf16`.
  std::string collective_text() const;
  /// Seconds of an iteration's exchanges.
  double exchange_seconds(const LinkCost& link, int ranks) const;
  /// Seconds of an iteration without overlap: compute, selection, exchange and update in turn.
  double seconds(const LinkCost& link, int ranks) const {
    return compute + step.update + exchange_seconds(link, ranks);
  }
  /// Scaling efficiency: `one_dense_rank`, the seconds of an iteration with dense SGD on one rank,
  /// over seconds(). 1 is perfect scaling.
  double efficiency(const LinkCost& link, int ranks, double one_dense_rank) const {
    return one_dense_rank / seconds(link, ranks);
  }
};

/// A prediction for every registered sparsifier that the cost model knows; for a dense one, one for
/// each collective with messages in f32 and one in bf16. `flat` > 0: a vector of that many elements
/// in place of the model's.
std::vector<Prediction> candidates(const ParameterArena& arena, size_t flat, double density,
                                   const LocalCosts& local, const Settings& settings);

/// One line for each candidate that may send more or fewer entries than its prediction assumes.
std::vector<std::string> volume_notes(const std::vector<Prediction>& all);

/// The bandwidth in bit/s above which the best dense candidate is faster than `sparse`: 0 when it
/// always is, infinity when it never is.
double break_even(const Prediction& sparse, const std::vector<Prediction>& all,
                  const LinkCost& link, int ranks);

/// The fastest candidate among those whose accuracy is close to that of dense SGD.
const Prediction& best(const std::vector<Prediction>& all, const LinkCost& link, int ranks);
/// The fastest dense candidate.
const Prediction& best_dense(const std::vector<Prediction>& all, const LinkCost& link, int ranks);

/// One sentence for each range of `ranks` (ascending) with the same fastest candidate.
std::vector<std::string> recommendations(const std::vector<Prediction>& all, const LinkCost& link,
                                         const std::vector<int64_t>& ranks);

}  // namespace tw
