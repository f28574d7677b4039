// Loader: shuffled, augmented batches of one rank's shard, prepared ahead by its own threads. A
// batch depends on (seed, epoch, sample ids) only. The number of threads, a restart in the middle
// of an epoch and earlier epochs do not change its bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "data/order.h"
#include "engine/core/tensor.h"

namespace tw {

struct LoaderConfig {
  int64_t batch = 128;  ///< samples per rank
  int rank = 0, ranks = 1;
  uint64_t seed = 1;
  /// Shuffle, augment and drop a short last batch. Else in the order of ids, last batch padded.
  bool training = true;
  int threads = 1;              ///< 0: next() prepares its batch itself
  int prefetch = 2;             ///< batches prepared ahead
  Device device = Device::cpu;  ///< the batches are in host memory pinned for it
  /// If the data set has a StorageLayout, shuffle by shards (shard_order) and call will_need() one
  /// shard ahead. Else shuffle the whole epoch.
  bool shuffle_shards = false;
};

/// One batch; valid until the next call of next().
struct Batch {
  Tensor images;  ///< u8 [N,H,W,C]
  Tensor labels;  ///< i32 [N]; -1: padding, or a validation sample that was skipped
};

/// UserError when `samples` training samples are too few for one batch on each rank.
void check_batch(size_t samples, const LoaderConfig& config);

class Loader {
 public:
  /// UserError when the data set is too small for one batch on each rank.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config);
  ~Loader();

  /// Batches per epoch, the same on every rank. Training: step t of rank r takes samples
  /// [(t*P + r)*B, +B) of the epoch's order, so P ranks with batch B see what one rank with
  /// batch P*B sees.
  int64_t batches() const;
  /// Starts `epoch` at batch `first`; next() then returns its batches up to the last one.
  void start(uint32_t epoch, int64_t first = 0);
  /// Waits for the next batch. Throws what the data set threw for one of its samples, again on
  /// every call until start().
  const Batch& next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tw
