// The batch-norm statistics that all ranks validate with.
#pragma once

#include "comm/communicator.h"
#include "models/model.h"

namespace tw {

/// The batch-norm statistics that all ranks validate with: the mean of all ranks (`average`), or
/// those of rank 0. Collective.
std::vector<float> statistics_of_all(Communicator& comm, const Model& model, bool average);

/// Replaces the batch-norm statistics of a model; its destructor restores them.
class StatisticsSwap {
 public:
  StatisticsSwap(Model& model, std::span<const float> statistics);
  ~StatisticsSwap();

 private:
  HostFloats live_;
  std::vector<float> own_;
};

}  // namespace tw
