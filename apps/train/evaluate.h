// Validation, sharded over the ranks.
#pragma once

#include "comm/communicator.h"
#include "data/device_prefetcher.h"
#include "models/model.h"

namespace tw {

/// The batch-norm statistics that all ranks validate with: their mean, or rank 0's. Collective.
std::vector<float> statistics_of_all(Context& host, Communicator& comm, const Model& model,
                                     bool average);

/// Puts other batch-norm statistics into the model while it lives.
class StatisticsSwap {
 public:
  StatisticsSwap(Model& model, std::span<const float> statistics);
  ~StatisticsSwap();

 private:
  HostFloats live_;
  std::vector<float> own_;
};

/// The feed's next part, in the model's input. Among several ranks one rank's damaged image is a
/// LocalUserError, which ends all: they would wait for that rank for ever.
void load_micro_batch(Communicator& comm, DevicePrefetcher& feed, const Model& model);

/// Loss and accuracy over the whole of `data`'s set, summed over ranks: the same counts for
/// any number of ranks. The model computes in `ctx`, the ranks exchange in `host`. Collective.
/// UserError when all of them are damaged and left out.
ops::LossSums evaluate(Context& ctx, Context& host, Communicator& comm, Model& model, Loader& data);

}  // namespace tw
