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
  HostFloats live_;
  std::vector<float> own_;
};

/// The loader's next batch. Among several ranks one rank's damaged image is a Fault, which ends
/// all: they would wait for that rank for ever.
const Batch& next_batch(Communicator& comm, Loader& loader);

/// Loss and accuracy over the whole of `loader`'s data set, summed over ranks: the same counts for
/// any number of ranks. The model computes in `ctx`, the ranks exchange in `host`. Collective.
ops::LossSums evaluate(Context& ctx, Context& host, Communicator& comm, Model& model,
                       Loader& loader);

}  // namespace tw
