// Validation, divided among the ranks.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "data/device_prefetcher.h"
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

/// Copies the next micro-batch into the model's input. A damaged image is a UserError; with several
/// ranks a LocalUserError, which ends the others too.
void load_micro_batch(Communicator& comm, DevicePrefetcher& feed, const Model& model);

/// Sums of loss and correct predictions over the whole data set of `data`, the same on every rank.
/// The model runs in `ctx`. `go_on` is told the batches done; when it returns false, on all ranks
/// alike, the sums are those of these batches. Collective. UserError when every image was skipped.
ops::LossSums evaluate(Context& ctx, Communicator& comm, Model& model, Loader& data,
                       const std::function<bool(int64_t)>& go_on);

}  // namespace tw
