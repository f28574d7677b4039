// Costs: what an iteration costs on this machine and link, before the number of ranks is known.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/common/measurements.h"
#include "comm/cost_model.h"

namespace tw {

/// Seconds of an optimizer step on one rank; with `hierarchical`, in one node.
struct StepCosts {
  double update = 0;    ///< selection and update
  double exchange = 0;  ///< exchange of this rank alone, or within the node
};

/// All costs, as one round of measurements found them, or as they were given.
struct Costs {
  ComputeProfile compute{};
  std::map<std::string, StepCosts> step{};  ///< by sparsifier
  LinkCost link{};

  /// Seconds of selection and update with this sparsifier; 0 if unknown.
  double update(const std::string& sparsifier) const {
    const auto known = step.find(sparsifier);
    return known == step.end() ? 0 : known->second.update;
  }
};

/// Several rounds. A quantity computed in each round has the spread of the measurement; what
/// disturbs a whole round cancels in ratios.
using Rounds = std::vector<Costs>;

}  // namespace tw
