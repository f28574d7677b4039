// Loader: shuffled, augmented batches of one rank's shard, prepared ahead by its own threads.
// Everything it yields depends on (seed, epoch, sample id) only: any number of threads, any restart
// gives the same bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "data/order.h"
#include "engine/core/tensor.h"

namespace tw {

struct LoaderConfig {
  int64_t batch = 128;  ///< per rank
  int rank = 0, ranks = 1;
  uint64_t seed = 1;
  bool training = true;  ///< shuffle, augment, drop a short last batch; else in order, padded
  int threads = 1;
  int prefetch = 2;             ///< batches prepared ahead
  Device device = Device::cpu;  ///< that batches are copied to: their memory is pinned for it
  /// Walk data sets that have a storage order in it, shard by shard (shard_order), and tell them
  /// which shard comes next. Else every order of all samples is as likely.
  bool shuffle_shards = false;
};

/// One batch; valid until the next call of next().
struct Batch {
  Tensor images;  ///< u8 [N,H,W,C]
  Tensor labels;  ///< i32 [N]; -1 marks padding
};

class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config);
  ~Loader();

  /// Batches per epoch, the same on every rank. Training: step t of rank r takes samples
  /// [(t*P + r)*B, +B) of the epoch's order, so P ranks x B see what one rank x P*B sees.
  int64_t batches() const;
  /// Starts `epoch` at batch `first` (resume); later next() calls walk to the epoch's end.
  void start(uint32_t epoch, int64_t first = 0);
  /// The next batch; waits for it if it is not ready.
  const Batch& next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tw
