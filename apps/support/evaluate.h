// Validation, sharded over the ranks.
#pragma once

#include "comm/communicator.h"
#include "data/loader.h"
#include "models/model.h"

namespace tw {

/// Puts other batch-norm statistics into the model while it lives.
class StatisticsSwap {
 public:
  StatisticsSwap(Model& model, std::span<const float> statistics);
  ~StatisticsSwap();

 private:
  std::span<float> live_;
  std::vector<float> own_;
};

/// Loss and accuracy over the whole of `loader`'s data set, summed over ranks: the same counts for
/// any number of ranks. Collective.
ops::LossSums evaluate(Context& ctx, Communicator& comm, Model& model, Loader& loader);

}  // namespace tw
