// Validation, divided among the ranks.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "data/device_prefetcher.h"
#include "models/model.h"

namespace tw {

/// The running batch-norm statistics: their mean over the ranks (`average`), or those of rank 0.
/// Collective.
std::vector<float> statistics_of_all(Communicator& comm, const Model& model, bool average);

/// Statistics at the present weights: plain means, over the first `batches` batches of epoch 0 of
/// `data`, of the means and unbiased variances with which a training step normalises each batch.
/// The ranks divide these batches: `data` has all of them on every rank (LoaderConfig::ranks is 1).
/// The same on every rank, and to rounding for any number of ranks. Keeps the running statistics.
/// Dropout draws from `seed`. `report` is told the batches that this rank has done. Collective.
std::vector<float> recompute_statistics(Context& ctx, Communicator& comm, Model& model,
                                        Loader& data, int64_t batches, uint64_t seed,
                                        const std::function<void(int64_t)>& report);

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
